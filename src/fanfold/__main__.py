"""``python -m fanfold`` is the command ``fanfold``."""

import sys

from fanfold.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
