"""Run the interpreter process: ``python -m submarine_zeppelin``."""

from __future__ import annotations

import sys

from submarine_zeppelin.service import main

if __name__ == "__main__":
    sys.exit(main())
