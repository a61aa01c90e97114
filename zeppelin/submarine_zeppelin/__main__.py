"""Run the interpreter process: ``python -m submarine_zeppelin``."""

from __future__ import annotations

import sys

from submarine_jobs.extras import MissingExtraError, require_extra
from submarine_zeppelin import service


def main() -> int:
    """Run the process; return 1 and write one line for Zeppelin's log if the extra is missing."""
    try:
        require_extra("zeppelin")
    except MissingExtraError as error:
        print(f"submarine: {error}", file=sys.stderr)
        return 1
    # The process needs thriftpy2; the package loads it here, by the first use of a name.
    return service.main()


if __name__ == "__main__":
    sys.exit(main())
