"""``%submarine.python``: a paragraph runs here, in the one Python session of its note.

So that code can be tried before it is a job. The same paragraphs are the program of
``%submarine run``, whether they ran or not; ``(only)`` does not run them here. What a paragraph
prints and shows is the user's own, and is shown as Jupyter shows it. Keeps no cells (``notes``).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from submarine_jobs.errors import SubmarineError
from submarine_jobs.program import PROGRAM, merge_cells, package_files
from submarine_zeppelin.display import Screen
from submarine_zeppelin.interface import (
    Code,
    Completion,
    Context,
    Kind,
    Message,
    Output,
    Result,
    Server,
    properties as settings,
)
from submarine_zeppelin.local import values
from submarine_zeppelin.local.interpreter import LocalInterpreter
from submarine_zeppelin.local.kernel import Kernel, KernelDiedError
from submarine_zeppelin.local.kernel_messages import Session, Shown
from submarine_zeppelin.notes import Paragraph, collect, note_raised

_MAX_COMPLETIONS = 100
_LEFT = (
    "The Python process of this note has ended, as was asked, and its variables are gone. The next "
    "paragraph starts a new one.\n"
)


class PythonInterpreter(LocalInterpreter):
    """The entry ``python`` of one of Zeppelin's sessions: a process for each of its notes."""

    entry = "python"

    def __init__(self, properties: Mapping[str, str], server: Server, session: str) -> None:
        super().__init__(properties, server, session)
        self._sessions: dict[str, Session] = {}

    def completion(self, text: str, cursor: int, context: Context) -> list[Completion]:
        """What the note's session proposes; nothing before it has started."""
        with self._lock:
            session = self._sessions.get(context.note_id)
        if session is None:
            return []
        found = session.kernel.complete(text, cursor)
        start = found.get("cursor_start", cursor)
        typed = text[start:cursor]
        # Zeppelin puts in what follows the last dot.
        skip = typed.rfind(".") + 1
        words = [str(word) for word in found.get("matches") or ()]
        return [
            Completion(word[skip:], word[skip:])
            for word in words[:_MAX_COMPLETIONS]
            if word.startswith(typed[:skip])
        ]

    def close(self) -> None:
        """End the processes of all notes."""
        super().close()
        with self._lock:
            sessions, self._sessions = list(self._sessions.values()), {}
        threads = [threading.Thread(target=session.kernel.close) for session in sessions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _session(self, note_id: str) -> Session:
        with self._lock:
            found = self._sessions.get(note_id)
            if found is None:
                kernel = Kernel(
                    settings.text(self.properties, "zeppelin.python"),
                    settings.number(self.properties, "zeppelin.python.maxResult"),
                )
                found = self._sessions[note_id] = Session(kernel)
                values.remember(self.session, note_id, found)
            return found

    def _collected(self, mine: Paragraph | None) -> str:
        file = mine.file if mine is not None else PROGRAM
        return f"This paragraph is part of {file or PROGRAM}; it did not run here."

    def _run(
        self,
        text: str,
        context: Context,
        output: Output,
        note: list[Paragraph],
        mine: Paragraph | None,
        stop: threading.Event,
    ) -> Result:
        session = self._session(context.note_id)
        while not session.turn.acquire(timeout=0.1):
            if stop.is_set():
                return Result(Code.ERROR, (Message(Kind.TEXT, "Stopped before it had started."),))
        try:
            if session.kernel.start():
                session.places.clear()
                session.modules.clear()
            self._bring_modules(session, note)
            shown = Shown(Screen(output, settings.output_limit(self.properties)), session)
            shown.name = _name(mine, context)
            try:
                reply = session.kernel.run(as_typed(text), shown.hear, stop.is_set)
                good = reply.get("status") == "ok"
                if mine is not None:
                    note_raised(context.place, mine.body, shown.raised(reply))
                if shown.payload(reply.get("payload")):
                    session.kernel.finish()
                    shown.screen.text(_LEFT)
            except KernelDiedError as died:
                shown.screen.text(f"{died}\n")
                good = False
            return Result(Code.SUCCESS if good else Code.ERROR, shown.screen.messages())
        finally:
            session.turn.release()

    def _bring_modules(self, session: Session, note: list[Paragraph]) -> None:
        """Let the session import the note's files, as the job will."""
        try:
            cells = collect([item for item in note if item.entry == "python" and item.file])
            files: dict[str, list[Any]] = {}
            for cell in cells.cells():
                files.setdefault(cell.filename, []).append(cell)
            texts = {
                name: merge_cells(group).text for name, group in files.items() if name != PROGRAM
            }
        except SubmarineError:
            return  # `run` says what is wrong; here the paragraph itself may still be right
        texts |= dict.fromkeys(package_files(set(texts)), "")
        directory = session.kernel.modules
        if texts == session.modules or directory is None:
            return
        changed = [name for name in texts if texts[name] != session.modules.get(name)]
        for name in session.modules.keys() - texts.keys():
            (directory / name).unlink(missing_ok=True)
        for name in changed:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(texts[name], "utf-8", "replace")
        session.modules = texts
        modules = [name[:-3].replace("/", ".").removesuffix(".__init__") for name in changed]
        session.kernel.run(_forget(modules), lambda kind, content: None, _never, silent=True)


def as_typed(text: str) -> str:
    """A paragraph's text so that line numbers are those of the paragraph.

    IPython drops blank lines at the top. The line that names the interpreter is such a line; as a
    comment it stays. A cell magic must be first, so there the numbers begin with it.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.startswith("\n"):
        return text.lstrip(" \t")
    return text if text.lstrip().startswith("%%") else "#" + text


def _name(mine: Paragraph | None, context: Context) -> str:
    if mine is not None:
        title = f' "{mine.title}"' if mine.title else ""
        return f"Paragraph {mine.number}{title}"
    return f'Paragraph "{context.title}"' if context.title else "This paragraph"


def _forget(modules: list[str]) -> str:
    return (
        "import importlib, sys\n"
        f"for _name in {modules!r}: sys.modules.pop(_name, None)\n"
        "importlib.invalidate_caches()\n"
        "del importlib, sys, _name"
    )


def _never() -> bool:
    return False


INTERPRETER = PythonInterpreter
