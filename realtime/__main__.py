"""Lets ``python -m realtime`` be the command `realtime`."""

from __future__ import annotations

import sys

from realtime.cli import main

if __name__ == "__main__":
    sys.exit(main())
