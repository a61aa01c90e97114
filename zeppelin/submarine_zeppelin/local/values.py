"""``--with`` in a note: values of its Python session, packed in that process.

The session's Python may be another one than ours, with other packages, so values do not come here
as objects: what packs them goes there, and what travels is only read. Starts no session.
"""

from __future__ import annotations

import difflib
import functools
import json
import tempfile
import threading
import weakref
import zipfile
from collections.abc import Sequence
from concurrent.futures import Future, TimeoutError as NotYet
from pathlib import Path

from submarine_jobs.errors import UsageError
from submarine_runtime.values import (
    archive as values,
    decoder as value_decoder,
    encoder as value_encoder,
    frames as value_frames,
)
from submarine_zeppelin.local.kernel_messages import Session

_sessions: weakref.WeakValueDictionary[tuple[str, str], Session] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def remember(session_id: str, note_id: str, session: Session) -> None:
    """Which Python session a note has in one of Zeppelin's sessions."""
    with _lock:
        _sessions[session_id, note_id] = session


def packed(session_id: str, note_id: str, names: Sequence[str]) -> bytes:
    """The values of ``names`` in a note's session, once what runs in it has ended.

    Raises
    ------
    UsageError
        If it does not run, does not define a name, or has a value that cannot travel.
    KeyboardInterrupt
        When stopped.
    """
    with _lock:
        session = _sessions.get((session_id, note_id))
    if session is None or not session.kernel.running:
        raise UsageError(
            "--with sends variables of the note's Python session, which has not started.",
            "Run the %submarine.python paragraphs that define them first.",
        )
    stopped = threading.Event()
    done: Future[bytes] = Future()
    threading.Thread(
        target=_perform, args=(session, names, stopped, done), daemon=True, name="submarine-values"
    ).start()
    try:
        while True:
            # In small pieces: Stop is delivered between two steps of this thread.
            try:
                return done.result(0.1)
            except NotYet:
                if done.done():
                    raise
    finally:
        stopped.set()


def _perform(
    session: Session, names: Sequence[str], stopped: threading.Event, done: Future[bytes]
) -> None:
    try:
        while not session.turn.acquire(timeout=0.1):
            if stopped.is_set():
                return
        try:
            done.set_result(_fetch(session, names, stopped))
        finally:
            session.turn.release()
    except BaseException as error:
        done.set_exception(error)


def _fetch(session: Session, names: Sequence[str], stopped: threading.Event) -> bytes:
    with tempfile.TemporaryDirectory(prefix="submarine-values-") as scratch:
        library, target = Path(scratch) / "library.zip", Path(scratch) / "values.zip"
        library.write_bytes(_library())
        text = Path(__file__).with_name("in_kernel_values.py").read_text("utf-8")
        told = {
            "WANTED": list(names),
            "LIBRARY": str(library),
            "TARGET": str(target),
            "LIMIT": values.DEFAULT_LIMIT,
        }
        around = f"{{**{told!r}, 'VARIABLES': globals()}}"
        code = f"exec(compile({text!r}, '<submarine>', 'exec'), {around})"
        reply = session.kernel.run(code, lambda kind, content: None, stopped.is_set, silent=True)
        try:
            said = json.loads(Path(f"{target}.json").read_bytes())
            _check(said)
            return target.read_bytes()
        except (OSError, ValueError):
            why = f"{reply.get('ename')}: {reply.get('evalue')}"[:300]
            raise UsageError(f"--with could not be packed in the note's Python: {why}") from None


def _check(said: dict[str, object]) -> None:
    missing, own = said.get("missing"), said.get("own")
    if isinstance(missing, str):
        words = [word for word in own if isinstance(word, str)] if isinstance(own, list) else []
        close = difflib.get_close_matches(missing, words, 1)
        hint = f"Did you mean {close[0]}?" if close else "Run the paragraph that defines it first."
        raise UsageError(
            f"--with names {missing}, which the note's Python session does not define.", hint
        )
    if isinstance(wrong := said.get("wrong"), str):
        raise UsageError(f"--with cannot send this: {wrong}")


@functools.cache
def _library() -> bytes:
    """The modules that pack values, as a zip that any Python imports from."""
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("submarine_runtime/__init__.py", "")
            root = Path(str(values.__file__)).parents[1]
            for name in ("lazy.py", "values/__init__.py"):
                archive.writestr(f"submarine_runtime/{name}", (root / name).read_text("utf-8"))
            for module in (values, value_encoder, value_decoder, value_frames):
                name = module.__name__.rpartition(".")[2]
                text = Path(str(module.__file__)).read_text("utf-8")
                archive.writestr(f"submarine_runtime/values/{name}.py", text)
        file.seek(0)
        return file.read()
