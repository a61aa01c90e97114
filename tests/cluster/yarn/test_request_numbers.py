"""The numbers of requests of containers: skein's master gives one twice, ours does not."""

from __future__ import annotations

import subprocess
from pathlib import Path

from submarine_jobs.backends.yarn.driver import make_master_jar, skein_jar
from submarine_minicluster.hadoop import ensure_jars
from submarine_minicluster.machine import find_java
from submarine_minicluster.settings import Settings
from submarine_runtime.yarn import GPU

SOURCE = Path(__file__).with_name("RequestNumbers.java")


def numbers(jar: Path) -> list[int]:
    """The numbers of three requests, and of one more after the first of them was placed."""
    java = find_java()
    jars = ensure_jars(Settings().hadoop, java, lambda _line: None)
    command = [str(java.binary), "-cp", f"{jar}:{jars}/*", str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


def test_no_request_has_the_number_of_an_open_one(tmp_path: Path) -> None:
    made = tmp_path / "master.jar"
    made.write_bytes(make_master_jar(skein_jar(), GPU))
    assert numbers(made) == [1, 2, 3, 4]
    # Without the change the request before it would be lost.
    assert numbers(Path(skein_jar())) == [1, 2, 3, 3]
