"""What proves a run right: the reference interpreter, and the kit that compares runs with it.

``interpreter`` says what a pipeline means, ``observing`` runs one for real and collects every output
item, ``comparison`` tells where the two differ, ``strategies`` makes up pipelines, and ``conformance`` is
the suite that a backend passes.
"""
