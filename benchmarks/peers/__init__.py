"""One program, documents → pages → model → gather, written for Fanfold and for each system it is compared with.

``work.py`` is what the stages do, the same for all; ``on_*.py`` are the programs, one module per system, each
as its experts would write it. A program runs in a process of its own (``__main__.py``), in the environment of
its system (``session.py``), and stages write down when they ran (``logbook.py``), so that nobody's own
account of time counts. README.md tells which settings the systems were given and why.
"""
