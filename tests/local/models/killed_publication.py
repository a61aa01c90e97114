"""Run a command many times, each in a process that kills itself at another step.

``python -m tests.local.models.killed_publication kill|run COUNT WORDS...``: process number N
executes the command with ``{}`` in its words replaced by N. With ``kill`` it ends by SIGKILL: with
N = 2n before change n of the store, with N = 2n + 1 after it. The processes are forks of one that
has loaded the modules. Standard output has one line for each: its wait status.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from typing import Any

from submarine_jobs import cli
from submarine_runtime.storage import LocalStore

_CHANGES = ("publish", "put", "move", "delete", "make_directory")
_count = 0


def _install_fault(step: int) -> None:
    for name in _CHANGES:
        setattr(LocalStore, name, _fault(getattr(LocalStore, name), step))


def _fault(original: Any, step: int) -> Any:
    def change(store: LocalStore, *arguments: Any, **options: Any) -> Any:
        global _count
        number, _count = _count, _count + 1
        if step == 2 * number:
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(store, *arguments, **options)
        if step == 2 * number + 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return change


def main(mode: str, count: int, words: list[str]) -> None:
    for number in range(count):
        child = os.fork()
        if not child:
            if mode == "kill":
                _install_fault(number)
            sys.argv[1:] = [word.replace("{}", str(number)) for word in words]
            with contextlib.redirect_stdout(io.StringIO()):
                code = cli.main()
            os._exit(code)
        print(os.waitpid(child, 0)[1], flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
