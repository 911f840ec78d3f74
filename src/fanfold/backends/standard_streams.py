"""Descriptors 0 to 2 are the standard streams', also where whoever started the program has closed them.

Owns that one precaution. A program that cron or a daemon starts may have none of the three. The next file,
socket or memory file that it opens gets such a number, and then whatever is printed below Python goes
into it, and a new process that is given streams of its own loses it.
"""

from __future__ import annotations

import os


def occupy() -> None:
    """Put the null device wherever one of the descriptors 0 to 2 is closed.

    They stay occupied, as the system would have had them; ``sys.stdout`` and its like are left as they are.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # the lowest that is free
        os.set_inheritable(descriptor, True)  # programs that this one starts need them as well
    os.close(descriptor)
