"""Wait for the runner's permission, then execute a node's program; exit if the runner has ended.

The runner starts this file as ``python -I -S gate.py PROGRAM ...`` with a pipe as standard input.
It imports little, because every command of every node waits for it.
"""

import os
import signal
import sys

if __name__ == "__main__":
    if not os.read(0, 1):
        os._exit(125)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    # Python ignores these signals, and the program would inherit that.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606
    except OSError as exc:
        os.write(2, f"{sys.argv[1]} cannot be started: {exc.strerror}.\n".encode())
        os._exit(127 if isinstance(exc, FileNotFoundError) else 126)
