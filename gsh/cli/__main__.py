"""python -m gsh.cli: the command ``gsh``."""

import sys

from gsh.cli import main

if __name__ == "__main__":
    sys.exit(main())
