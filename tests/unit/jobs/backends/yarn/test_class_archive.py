"""The option of the class archive, as YARN's launch script expands it on a node."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.driver import MasterArchive
from submarine_jobs.storage import LocalStorage

RELEASE = 'IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.9"\nJAVA_VERSION_DATE="2023-10-17"\n'
JARS = ("hadoop-common-3.5.0.jar", "hadoop-yarn-client-3.5.0.jar", "guava-32.jar")


def archive(tmp_path: Path, lib: Path) -> MasterArchive:
    lib.mkdir(parents=True)
    for name in (*JARS, "hadoop-common-3.5.0-tests.jar"):
        (lib / name).touch()
    entries = ["/etc/hadoop", *(str(path) for path in sorted(lib.iterdir()))]
    (tmp_path / "jdk").mkdir()
    (tmp_path / "jdk/release").write_text(RELEASE)
    return MasterArchive(LocalStorage(), str(tmp_path), tmp_path / "jdk", entries)


def expand(option: str, java: Path | str = "") -> str:
    """Return the variable that a launch script would export on a node with a Java."""
    script = f'export JDK_JAVA_OPTIONS="{option} -Xshare:auto"\nprintf %s "$JDK_JAVA_OPTIONS"'
    done = subprocess.run(
        ["/bin/bash", "-c", script],
        env={"PATH": os.environ["PATH"], "JAVA_HOME": str(java)},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert done.stderr == ""
    return done.stdout


def test_the_archive_is_used_where_the_jars_have_the_same_paths(tmp_path: Path) -> None:
    lib, java = tmp_path / "lib", tmp_path / "jdk"
    option = archive(tmp_path, lib).option
    assert expand(option, java) == "@am/args -Xshare:auto"
    (lib / "guava-32.jar").unlink()
    (lib / "hadoop-common-3.5.0-tests.jar").unlink()
    assert expand(option, java) == "@am/args -Xshare:auto"
    (lib / "hadoop-yarn-client-3.5.0.jar").unlink()
    assert expand(option, java) == " -Xshare:auto"


def test_another_java_runs_without_the_jars_of_the_archive(tmp_path: Path) -> None:
    """It may be too old for them."""
    made = archive(tmp_path, tmp_path / "lib")
    other = tmp_path / "java-11"
    other.mkdir()
    (other / "release").write_text(RELEASE.replace("17.0.9", "11.0.9"))
    assert expand(made.option, other) == " -Xshare:auto"
    assert expand(made.option) == " -Xshare:auto"
    (tmp_path / "jdk/release").unlink()
    assert made.option == ""


@pytest.mark.parametrize("name", ["a b", "$(touch x)", "`x`", 'a"b', "a'b", "a;b", "a\\b"])
def test_no_path_is_read_by_a_shell(tmp_path: Path, name: str) -> None:
    assert archive(tmp_path, tmp_path / name).option == ""
