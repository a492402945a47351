"""``python -m pyparq``: the command line."""

from __future__ import annotations

import sys

from pyparq.cli import main

if __name__ == "__main__":
    sys.exit(main())
