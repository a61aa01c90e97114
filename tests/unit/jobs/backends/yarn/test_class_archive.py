"""The option of the class archive, as YARN's launch script expands it on a node."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.driver import MasterArchive
from submarine_jobs.storage import LocalStorage

JARS = ("hadoop-common-3.5.0.jar", "hadoop-yarn-client-3.5.0.jar", "guava-32.jar")


def archive(tmp_path: Path, lib: Path) -> MasterArchive:
    lib.mkdir(parents=True)
    for name in (*JARS, "hadoop-common-3.5.0-tests.jar"):
        (lib / name).touch()
    entries = ["/etc/hadoop", *(str(path) for path in sorted(lib.iterdir()))]
    return MasterArchive(LocalStorage(), str(tmp_path), tmp_path / "jdk", entries)


def expand(option: str) -> str:
    """Return the variable that a launch script would export."""
    script = f'export JDK_JAVA_OPTIONS="{option} -Xshare:auto"\nprintf %s "$JDK_JAVA_OPTIONS"'
    done = subprocess.run(
        ["/bin/bash", "-c", script], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stderr == ""
    return done.stdout


def test_the_archive_is_used_where_the_jars_have_the_same_paths(tmp_path: Path) -> None:
    lib = tmp_path / "lib"
    option = archive(tmp_path, lib).option
    assert expand(option) == "@am/args -Xshare:auto"
    (lib / "guava-32.jar").unlink()
    (lib / "hadoop-common-3.5.0-tests.jar").unlink()
    assert expand(option) == "@am/args -Xshare:auto"
    (lib / "hadoop-yarn-client-3.5.0.jar").unlink()
    assert expand(option) == " -Xshare:auto"


@pytest.mark.parametrize("name", ["a b", "$(touch x)", "`x`", 'a"b', "a'b", "a;b", "a\\b"])
def test_no_path_is_read_by_a_shell(tmp_path: Path, name: str) -> None:
    assert archive(tmp_path, tmp_path / name).option == ""
