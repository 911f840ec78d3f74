"""A stage that does nothing, in a module that imports nothing.

What workers spend on it is Fanfold's own; imports of the user's module come on top, in each worker.
"""


class Trivial:
    """A stage whose constructor does nothing."""

    def __call__(self, numbers: list[int]) -> list[int]:
        return numbers
