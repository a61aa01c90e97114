"""The table of ports for firewalls: each row names existing code, and Hadoop's keys and ports."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path

import pytest

from tests.unit.pages import ROOT

_OPENS = re.compile(r"^def bind_port\(|^class (?:Port|Page)Server", re.MULTILINE)
_KEYS = re.compile(r"(\d+)(?:, | \()`((?:yarn|dfs|fs)\.[\w.]+)`")


def rows() -> list[list[str]]:
    text = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    section = text.partition("### Ports and firewalls")[2].partition("\n#")[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row[0]} to {row[1]}: {row[2][:20]}")
def test_a_row_has_a_port_and_names_its_code(row: list[str]) -> None:
    _source, _target, port, what, needed, code = row
    assert re.search(r"\d+|`port_range`", port)
    assert what
    assert needed
    assert (ROOT / code.strip("`")).is_file()


def test_every_module_that_opens_a_port_is_in_the_table() -> None:
    opened = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "runtime").rglob("*.py")
        if _OPENS.search(path.read_text())
    }
    assert opened == {
        row[5].strip("`") for row in rows() if row[2] == "`port_range`" and row[0] == "nodes"
    }


def test_the_ports_are_the_defaults_of_hadoop() -> None:
    """Read from the jars of the test environment's Hadoop, where they are installed."""
    found: dict[str, str] = {}
    for jar in Path.home().glob(".cache/**/hadoop-*-3.*.jar"):
        with zipfile.ZipFile(jar) as archive:
            for name in {"yarn-default.xml", "hdfs-default.xml"} & set(archive.namelist()):
                for item in ElementTree.fromstring(archive.read(name)).iter("property"):
                    found[item.findtext("name") or ""] = item.findtext("value") or ""
    if not found:
        pytest.skip("there are no jars of Hadoop on this machine")
    named = [pair for row in rows() for pair in _KEYS.findall(row[2])]
    assert named
    for port, key in named:
        if key != "fs.defaultFS":
            assert found[key].rpartition(":")[2] == port, key
