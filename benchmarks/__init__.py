"""Benchmarks: what Fanfold costs and how it compares. `./dev bench NAME` runs one.

Each module here with a function ``run(report, arguments)`` is a benchmark. They state what they measured
and never assert; tests do not depend on how fast a machine is.
"""
