"""``python -m submarine_zeppelin``: the process that Zeppelin starts for the group."""

from __future__ import annotations

import sys

from submarine_zeppelin.service import main

if __name__ == "__main__":
    sys.exit(main())
