"""The log of a node is limited in size and keeps its beginning and its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from submarine_workflows.local.log_limit import LogLimit


def lines(first: int, last: int) -> bytes:
    return b"".join(b"line %07d\n" % number for number in range(first, last))


def test_the_middle_goes_and_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(lines(0, 500))
    limit = LogLimit(path, limit=10_000, head=130, tail=1300)
    assert not limit.check()
    written = lines(0, 1000)
    path.write_bytes(written)
    assert limit.check()
    head, note, tail = path.read_bytes().partition(b"\n[")
    assert head == written[:130].removesuffix(b"\n") or written.startswith(head)
    rest = note + tail
    assert rest.startswith(f"\n[{limit.left_out:,} bytes omitted".encode())
    kept = tail[tail.index(b"\n") + 1 :]
    assert written.endswith(kept)
    assert kept.startswith(b"line ")
    assert len(written) == 130 + limit.left_out + len(kept)

    # Once more: the count is that of all times, and the earlier note is not the command's.
    with path.open("ab") as file:
        file.write(lines(1000, 2000))
    written += lines(1000, 2000)
    assert limit.check()
    text = path.read_bytes()
    assert text.count(b"omitted") == 1
    kept = text[text.index(b"]\n") + 2 :]
    assert written.endswith(kept)
    assert len(written) == 130 + limit.left_out + len(kept)


def test_a_command_that_writes_on_and_on(tmp_path: Path) -> None:
    path = tmp_path / "log"
    program = "for n in range(200_000): print(f'line {n:07}', flush=not n % 100)\nprint('the end')"
    limit = LogLimit(path, limit=100_000, head=1000, tail=10_000)
    with path.open("ab") as file:
        writing = subprocess.Popen([sys.executable, "-c", program], stdout=file)
        while writing.poll() is None:
            limit.check()
        limit.check()
    assert writing.returncode == 0
    text = path.read_bytes()
    assert len(text) <= limit.limit
    assert text.startswith(lines(0, 70))
    assert text.endswith(b"line 0199999\nthe end\n")
    assert text.count(b"omitted") == 1
    # Bytes written at the moment of a cut are not counted.
    assert limit.left_out > 200_000 * 13 / 2


def test_a_log_that_is_gone_is_no_error(tmp_path: Path) -> None:
    assert not LogLimit(tmp_path / "none" / "log").check()
    assert not (tmp_path / "none").exists()
