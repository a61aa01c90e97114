"""The jars of a Zeppelin server, fetched once by Maven and cached where Hadoop's are.

Run as a program by set-up (``scripts/setup.sh zeppelin``); imported by the rig, which then finds
them there. Starts no server.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from submarine_minicluster.artifacts import cache_dir
from submarine_minicluster.java import find_java
from submarine_minicluster.locking import file_lock

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
        maven = shutil.which("mvn")
        if maven is None:
            raise SystemExit("Maven (mvn) is not on PATH, and it fetches Zeppelin's jars.")
        print(f"set-up: fetching Zeppelin {VERSION} with Maven (71 MB, the first time only)")
        with tempfile.TemporaryDirectory(dir=lib.parent, prefix="fetch-") as scratch:
            draft = Path(scratch) / "lib"
            _resolve(maven, draft)
            draft.rename(lib)
    return lib


def _resolve(maven: str, target: Path) -> None:
    command = [maven, "-B", "-q", "-f", str(_POM), f"-Dzeppelin.version={VERSION}"]
    command += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
    command += [f"-DoutputDirectory={target}"]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        cwd=target.parent,
        env={**os.environ, "JAVA_HOME": str(find_java().home)},
        timeout=_TIMEOUT,
        check=False,
    )
    if done.returncode or not list(target.glob("zeppelin-server-*.jar")):
        said = [line for line in done.stdout.splitlines() if "[ERROR]" in line]
        raise SystemExit(f"Maven could not fetch Zeppelin {VERSION}: {''.join(said[:3])[:600]}")


if __name__ == "__main__":
    ensure_jars()
    sys.exit(0)
