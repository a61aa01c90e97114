"""Becomes a node's program once its runner says so, and nothing if the runner is gone before.

Started as a file by the runner, ``python -I -S gate.py PROGRAM ...``, its standard input a pipe.
Imports little, since every command of every node waits for it.
"""

import os
import signal
import sys

if __name__ == "__main__":
    if not os.read(0, 1):
        os._exit(125)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    # Python ignores these; a program would inherit that.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606
    except OSError as exc:
        os.write(2, f"{sys.argv[1]} cannot be started: {exc.strerror}.\n".encode())
        os._exit(127 if isinstance(exc, FileNotFoundError) else 126)
