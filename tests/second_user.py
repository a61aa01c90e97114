"""Code that runs as a second user of this machine, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

#: A user that owns nothing on this machine; it needs no account.
SECOND = 64003
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can run a process as a second user"
)

# What the code may use is imported first: the other user may not read this Python.
_PRELUDE = """
import base64, encodings.ascii, encodings.idna, fcntl, http.client, json, os, socket, ssl, stat
import subprocess, sys, time, traceback, urllib.parse
socket.setdefaulttimeout(20)
os.setgroups([])
os.setgid({uid})
os.setuid({uid})
os.chdir("/")
def attempt():
{body}
try:
    result = attempt()
except BaseException as error:
    result = f"{{type(error).__name__}}: {{error}}"
print(result)
"""


def start_as_user(code: str, uid: int = SECOND) -> subprocess.Popen[str]:
    """Run code as another user in the background; see `as_user`."""
    body = textwrap.indent(textwrap.dedent(code), "    ")
    return subprocess.Popen(
        [sys.executable, "-I", "-c", _PRELUDE.format(uid=uid, body=body)],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PATH": os.defpath},
    )


def as_user(code: str, uid: int = SECOND, timeout: float = 60) -> str:
    """The value that code returns as another user, or its exception, as text.

    Parameters
    ----------
    code
        The body of a function.
    """
    with start_as_user(code, uid) as process:
        try:
            return process.communicate(timeout=timeout)[0].strip()
        finally:
            process.kill()
