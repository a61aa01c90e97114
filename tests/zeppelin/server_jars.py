"""The jars of a Zeppelin server, fetched once by Maven and cached where Hadoop's are.

Run as a program by set-up (``scripts/setup.sh zeppelin``); imported by the tests, which then find
them there. Starts no server.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path

from submarine_minicluster.errors import MiniclusterError
from submarine_minicluster.hadoop import cache_dir
from submarine_minicluster.hadoop.maven import copy_jars
from submarine_minicluster.machine import file_lock, find_java

VERSION = "0.10.0"
_POM = Path(__file__).with_name("pom.xml")
_TIMEOUT = 1200.0


def lib_dir() -> Path:
    """Where the jars are, or will be; the name changes with what is asked of Maven."""
    digest = hashlib.sha256(_POM.read_bytes()).hexdigest()[:8]
    return cache_dir() / "zeppelin" / f"{VERSION}-{digest}" / "lib"


def ensure_jars() -> Path:
    """The directory of the jars; of several processes at once one fetches and the others wait."""
    lib = lib_dir()
    if lib.is_dir():
        return lib
    lib.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(lib.parent.with_name(f"{lib.parent.name}.lock"), timeout=_TIMEOUT):
        if lib.is_dir():
            return lib
        _say(f"fetching Zeppelin {VERSION} with Maven (71 MB, the first time only)")
        with tempfile.TemporaryDirectory(dir=lib.parent, prefix="fetch-") as scratch:
            draft = Path(scratch) / "lib"
            options = (f"-Dzeppelin.version={VERSION}",)
            try:
                copy_jars(f"Zeppelin {VERSION}", _POM, draft, find_java(), options, _say)
            except MiniclusterError as exc:
                raise SystemExit(str(exc)) from None
            draft.rename(lib)
    return lib


def _say(line: str) -> None:
    print(f"set-up: {line}", flush=True)


if __name__ == "__main__":
    ensure_jars()
    sys.exit(0)
