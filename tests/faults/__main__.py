"""`python -m faults`, with this folder's parent on the path."""

from __future__ import annotations

import sys

from faults.attack import main

if __name__ == "__main__":
    sys.exit(main())
