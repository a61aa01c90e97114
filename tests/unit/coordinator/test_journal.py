"""The journal of the state machine: complete, truncated and on a full disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from submarine_runtime.coordinator.record import Journal
from tests.unit.coordinator.helpers import no_larger_files_than


def test_a_truncated_journal_is_read_up_to_its_last_whole_record(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(str(path))
    assert journal.is_new
    journal.append({"type": "begin"})
    journal.append({"type": "tick"})
    journal.close()
    with path.open("ab") as file:
        file.write(b'{"type": "half')
    again = Journal(str(path))
    assert [entry["type"] for entry in again.entries()] == ["begin", "tick"]
    again.append({"type": "resumed"})
    again.close()
    third = Journal(str(path))
    assert [entry["type"] for entry in third.entries()] == ["begin", "tick", "resumed"]
    third.close()


def test_a_short_write_is_removed_and_repeated(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(str(path))
    assert journal.append({"type": "begin"})
    size = path.stat().st_size
    with no_larger_files_than(size + 5):
        assert not journal.append({"type": "tick", "n": 1})
        assert not journal.append({"type": "tick", "n": 2})
    assert journal.failure == os.strerror(errno.EFBIG)
    assert path.stat().st_size == size
    # A coordinator that starts now finds a journal that is not complete.
    broken = Journal(str(path))
    assert (broken.complete, broken.is_new) == (False, False)
    assert [entry["type"] for entry in broken.entries()] == ["begin"]
    broken.close()
    # When there is space again nothing is missing.
    assert journal.append({"type": "tick", "n": 3})
    journal.close()
    again = Journal(str(path))
    assert again.complete
    assert [entry.get("n") for entry in again.entries()] == [None, 1, 2, 3]
    again.clear()
    again.append({"type": "begin"})
    again.close()
    last = Journal(str(path))
    assert last.complete
    assert list(last.entries()) == [{"type": "begin"}]
    last.close()


def test_a_journal_on_a_full_disk_uses_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("submarine_runtime.coordinator.record.journal.MAX_PENDING_BYTES", 200)
    journal = Journal(str(tmp_path / "journal.jsonl"))
    journal.append({"n": 0})
    with no_larger_files_than(10):
        for number in range(50):
            assert not journal.append({"n": number})
    assert not journal.append({"n": 50})
    journal.close()
    again = Journal(str(tmp_path / "journal.jsonl"))
    assert not again.complete
    assert list(again.entries()) == [{"n": 0}]
    again.close()


def test_a_bad_record_in_the_middle_makes_a_journal_incomplete(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    Journal(str(path)).close()
    path.write_bytes(b'{"n": 1}\n{"n": \n{"n": 3}\n')
    journal = Journal(str(path))
    assert not journal.complete
    assert list(journal.entries()) == [{"n": 1}]
    journal.close()
