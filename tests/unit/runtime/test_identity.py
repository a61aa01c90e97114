"""A process is identified by its number, start time and boot."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace

from submarine_runtime.processes import ProcessIdentity


def _runs(identity: ProcessIdentity) -> bool:
    return identity.alive


def test_a_process_is_alive_until_it_ends_and_is_not_confused_with_a_later_one() -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        identity = ProcessIdentity.of(process.pid)
        assert identity is not None
        assert _runs(identity)
        others = [
            replace(identity, started=identity.started - 1),
            replace(identity, boot="another boot"),
        ]
        for other in others:
            assert not _runs(other)
            assert not other.signal(signal.SIGKILL)
        assert process.poll() is None
        assert identity.signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not _runs(identity), "a zombie does not run"
    finally:
        process.kill()
        process.wait()
    assert not identity.signal(signal.SIGTERM)


def test_its_text_names_it_during_the_same_boot() -> None:
    own = ProcessIdentity.of(os.getpid())
    assert own is not None
    assert ProcessIdentity.parse(str(own)) == own


def test_a_malformed_text_names_no_process() -> None:
    for text in ("", "12", "12:", ":7", "12:7 ", "-1:7", "12:7:boot"):
        assert ProcessIdentity.parse(text) is None
