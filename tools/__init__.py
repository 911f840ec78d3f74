"""What works on this repository and is no part of the package; `./dev` is the way in.

Standard library only: these modules run before anything is installed.
"""
