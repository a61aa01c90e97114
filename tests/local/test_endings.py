"""How programs end, each for real, and what the record says of it."""

from __future__ import annotations

from agent_rig import Rig

from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.states import State


def test_a_program_that_succeeds(rig: Rig) -> None:
    record = rig.run("import sys\nprint('hello')\nprint('oops', file=sys.stderr)\n")
    assert record.state is State.SUCCEEDED
    assert record.reason is EndReason.SUCCEEDED
    assert record.exit_code == 0
    assert rig.shipped("stdout") == b"hello\n"
    assert rig.shipped("stderr") == b"oops\n"
    assert record.logs == {"worker:0/e1-a1/stdout": 6, "worker:0/e1-a1/stderr": 5}
    states = [event.state for event in record.events if event.kind == "state"]
    assert states == [State.STARTING, State.RUNNING, State.FINISHING, State.SUCCEEDED]
    names = [phase.name for phase in record.phases]
    assert names == ["localisation", "start", "first_line", "run", "save"]
    assert all(phase.end is not None and phase.end >= phase.start for phase in record.phases)
