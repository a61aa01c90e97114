"""SIGTERM in the middle of an import: what is raised for it may come out as something else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from submarine_runtime.agent.gang_task import TaskAgent, task_agent as task
from submarine_runtime.agent.program import SigtermInterrupt, Wakeup
from submarine_runtime.agent.single_task import SingleTaskAgent, single_task_agent


def lose() -> None:
    """As ``from _ssl import RAND_egd`` does, which a signal interrupts."""
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except SigtermInterrupt:
        raise TypeError("expected a message argument") from None


class Alone(SingleTaskAgent):
    def __init__(self) -> None:
        self._wakeup = Wakeup()
        self._orphaned, self._parent = False, 0
        nothing: Any = None
        self._config = self._scratch = self._status = self._cancel = nothing

    def _claimed_run(self) -> int:
        lose()
        return 0

    def _finish_terminated(self, reason: Any, detail: str) -> int:
        print(reason.name)
        return 1


class OneOfMany(TaskAgent):
    def __init__(self) -> None:
        context: Any = SimpleNamespace(wakeup=Wakeup())
        self._context, self._run = context, None
        preparing: Any = SimpleNamespace(release=lambda: None)
        self._preparing = preparing

    def _live(self) -> int:
        lose()
        return 0


def main(which: str) -> int:
    """In a process of its own: it takes the signals over."""
    patched: Any = single_task_agent
    patched.single_task_context = lambda *_: SimpleNamespace(store=SimpleNamespace())
    patched.claim = lambda *_: True
    other: Any = task
    other.terminate = lambda *_: print("KILLED_ON_CLUSTER") or 1
    return Alone().run() if which == "alone" else OneOfMany().run()


@pytest.mark.parametrize("which", ["alone", "of many"])
def test_sigterm_that_comes_out_as_another_exception_is_sigterm(which: str) -> None:
    words = [sys.executable, "-m", "tests.subprocesses.agent.test_termination", which]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=180)
    assert (done.returncode, done.stdout) == (1, "KILLED_ON_CLUSTER\n"), done.stderr
    assert "Traceback" not in done.stderr


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
