"""``python -m simkit``, the command line."""

import sys

from simkit.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
