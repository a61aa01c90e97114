"""Pack variables of a note's Python session for ``--with``.

The session may run another Python with other packages, so the code that packs the values is
executed in the session, and this process only reads the packed file. From a session in a container
the file comes in a message.
"""

from __future__ import annotations

import base64
import difflib
import functools
import json
import tempfile
import threading
import weakref
import zipfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, TimeoutError as NotYet
from pathlib import Path
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_runtime import values
from submarine_runtime.translation import _
from submarine_zeppelin.local.kernel_messages import PythonSession

_sessions: weakref.WeakValueDictionary[tuple[str, str, str], PythonSession] = (
    weakref.WeakValueDictionary()
)
_lock = threading.Lock()
#: Maximum size of the packed values in a message, and the type of the message.
_MESSAGE_LIMIT, _MIME_TYPE = 64 << 20, "application/vnd.submarine.values+json"


def register_session(session_id: str, note_id: str, user: str, session: PythonSession) -> None:
    """Register the Python session of a note in a Zeppelin session.

    Parameters
    ----------
    user
        Owner of a session in a container; empty for the session of all users.
    """
    with _lock:
        _sessions[session_id, note_id, user] = session


def pack_session_values(session_id: str, note_id: str, user: str, names: Sequence[str]) -> bytes:
    """Pack the values of ``names`` in a note's session, after active executions have ended.

    Parameters
    ----------
    user
        User of the paragraph, whose own session is used if sessions have owners.

    Raises
    ------
    UsageError
        If the session does not run, or a name is undefined or its value cannot be packed.
    KeyboardInterrupt
        If the paragraph is stopped.
    """
    with _lock:
        own = _sessions.get((session_id, note_id, user))
        session = own or _sessions.get((session_id, note_id, ""))
    if session is None or not session.kernel.running:
        raise UsageError(
            _("--with packs variables of the note's Python session, which has not started."),
            _("Run the %submarine.python paragraphs that define them first."),
        )
    stopped = threading.Event()
    future: Future[bytes] = Future()
    threading.Thread(
        target=_perform,
        args=(session, names, stopped, future),
        daemon=True,
        name="submarine-values",
    ).start()
    try:
        while True:
            # With a timeout, because an interrupt is raised only while Python code runs.
            try:
                return future.result(0.1)
            except NotYet:
                if future.done():
                    raise
    finally:
        stopped.set()


def _perform(
    session: PythonSession, names: Sequence[str], stopped: threading.Event, future: Future[bytes]
) -> None:
    try:
        while not session.lock.acquire(timeout=0.1):
            if stopped.is_set():
                return
        try:
            future.set_result(_fetch(session, names, stopped))
        finally:
            session.lock.release()
    except BaseException as error:
        future.set_exception(error)


def _fetch(session: PythonSession, names: Sequence[str], stopped: threading.Event) -> bytes:
    shared = session.kernel.shares_files
    with tempfile.TemporaryDirectory(prefix="submarine-values-") as scratch:
        target = Path(scratch) / "values.zip"
        text = Path(__file__).with_name("kernel_values.py").read_text("utf-8")
        arguments = {
            "NAMES": list(names),
            "LIBRARY": _library(),
            "TARGET": str(target) if shared else "",
            "LIMIT": values.DEFAULT_LIMIT if shared else _MESSAGE_LIMIT,
            "MIME": _MIME_TYPE,
        }
        around = f"{{**{arguments!r}, 'VARIABLES': globals()}}"
        code = f"exec(compile({text!r}, '<submarine>', 'exec'), {around})"
        received: list[Mapping[str, Any]] = []

        def handle(kind: str, content: Mapping[str, Any]) -> None:
            if kind == "display_data" and _MIME_TYPE in content["data"]:
                received.append(content["data"][_MIME_TYPE])

        reply = session.kernel.run(code, handle, stopped.is_set, silent=True)
        try:
            if shared:
                report = json.loads(Path(f"{target}.json").read_bytes())
                _check_report(report)
                return target.read_bytes()
            report = received[0]["report"]
            _check_report(report)
            return base64.b64decode(received[0]["values"], validate=True)
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            reason = f"{reply.get('ename')}: {reply.get('evalue')}"[:300]
            raise UsageError(
                _("--with could not be packed in the note's Python: {reason}").format(reason=reason)
            ) from None


def _check_report(report: dict[str, object]) -> None:
    missing, own = report.get("missing"), report.get("own")
    if isinstance(missing, str):
        words = [word for word in own if isinstance(word, str)] if isinstance(own, list) else []
        close = difflib.get_close_matches(missing, words, 1)
        hint = (
            _("Did you mean {close}?").format(close=close[0])
            if close
            else _("Run the paragraph that defines it first.")
        )
        raise UsageError(
            _("--with names {missing}, which the note's Python session does not define.").format(
                missing=missing
            ),
            hint,
        )
    if isinstance(message := report.get("wrong"), str):
        raise UsageError(_("--with cannot pack this value: {message}").format(message=message))


@functools.cache
def _library() -> bytes:
    """Return a zip with the modules that pack values, from which any Python can import."""
    with tempfile.TemporaryFile() as whole:
        with zipfile.ZipFile(whole, "w") as library:
            library.writestr("submarine_runtime/__init__.py", "")
            package = Path(str(values.__file__)).parent
            parent = package.parent
            used = (parent / "lazy.py", parent / "translation.py")
            for file in (*used, *sorted(package.glob("*.py*"))):
                name = file.relative_to(parent).as_posix()
                library.writestr(f"submarine_runtime/{name}", file.read_text("utf-8"))
        whole.seek(0)
        return whole.read()
