"""`python -m afterwatch.cli`."""

import sys

from afterwatch.cli import main

if __name__ == "__main__":
    sys.exit(main())
