"""The interpreter ``%submarine.python``, which runs paragraphs in the Python session of their note.

The session runs on Zeppelin's machine, or, with the setting ``submarine.session.kernel``, in a
container of the cluster as the user of the paragraph; then each user of a note has a session.
The same paragraphs form the program of ``%submarine run``, run or not. Output is shown as in
Jupyter; HTML of the user's code is not escaped.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from submarine_jobs.errors import SubmarineError, UsageError, no_cluster
from submarine_jobs.program import PROGRAM, merge_cells, package_files
from submarine_runtime.translation import _
from submarine_zeppelin.accounts import paragraph_config, shared_session
from submarine_zeppelin.display import OutputBuffer
from submarine_zeppelin.interface import (
    SESSION_KERNEL,
    Code,
    Completion,
    Context,
    Kind,
    Message,
    Output,
    Result,
    Server,
    number_property,
    output_limit,
    text_property,
)
from submarine_zeppelin.local import values
from submarine_zeppelin.local.container_process import ContainerProcess
from submarine_zeppelin.local.context_server import ContextServer, paragraph_forms
from submarine_zeppelin.local.interpreter import LocalInterpreter
from submarine_zeppelin.local.kernel import Kernel
from submarine_zeppelin.local.kernel_messages import ExecutionOutput, PythonSession
from submarine_zeppelin.local.kernel_process import (
    KernelDiedError,
    KernelProcess,
    SessionProcess,
)
from submarine_zeppelin.notes import Paragraph, collect_cells, expand_text, record_exception

if TYPE_CHECKING:
    from submarine_jobs.client import Session

_MAX_COMPLETIONS = 100
_EXITED = _(
    "The Python process of this note has exited as requested, and its variables are lost. The "
    "next paragraph starts a new process.\n"
)


class PythonInterpreter(LocalInterpreter):
    """Interpreter of one Zeppelin session, with a Python process for each note.

    In containers there is one for each note and user: code must not run as another user.
    """

    entry = "python"

    def __init__(self, properties: Mapping[str, str], server: Server, session: str) -> None:
        super().__init__(properties, server, session)
        #: Note, owner (empty on this machine) -> session.
        self._sessions: dict[tuple[str, str], PythonSession] = {}

    @property
    def _kernelspec(self) -> str:
        return text_property(self.properties, SESSION_KERNEL)

    def _owner(self, context: Context) -> str:
        return context.user if self._kernelspec else ""

    def serial_key(self, context: Context) -> str:
        """Return a key of the note, and of the user if each user has a session."""
        return f"{context.note_id} {self._owner(context)}".strip()

    def expand(self, text: str, context: Context) -> str:
        """Return the text with the values of its forms."""
        return expand_text(text, context)

    def completion(self, text: str, cursor: int, context: Context) -> list[Completion]:
        """Return the completions of the note's session; none before its start."""
        with self._lock:
            session = self._sessions.get((context.note_id, self._owner(context)))
        if session is None:
            return []
        reply = session.kernel.complete(text, cursor)
        start = reply.get("cursor_start", cursor)
        typed = text[start:cursor]
        # Zeppelin inserts the text after the last dot.
        skip = typed.rfind(".") + 1
        words = [str(word) for word in reply.get("matches") or ()]
        return [
            Completion(word[skip:], word[skip:])
            for word in words[:_MAX_COMPLETIONS]
            if word.startswith(typed[:skip])
        ]

    def close(self) -> None:
        """End the processes of all notes in parallel."""
        super().close()
        with self._lock:
            sessions, self._sessions = list(self._sessions.values()), {}
        threads = [threading.Thread(target=session.kernel.close) for session in sessions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _session(self, context: Context) -> PythonSession:
        key = context.note_id, self._owner(context)
        with self._lock:
            session = self._sessions.get(key)
            if session is None:
                calls = ContextServer(self.server.resources)
                rows = number_property(self.properties, "zeppelin.python.maxResult")
                kernel = Kernel(self._process(context.user), rows, calls)
                session = self._sessions[key] = PythonSession(kernel, calls)
                values.register_session(self.session, *key, session)
            return session

    def _process(self, user: str) -> SessionProcess:
        if not self._kernelspec:
            return KernelProcess(text_property(self.properties, "zeppelin.python"))

        def session_for(options: Mapping[str, Any]) -> Session:
            config = paragraph_config(self.properties, user, options)
            if config.profile.backend is None:
                raise no_cluster()
            return shared_session(config)

        return ContainerProcess(self._kernelspec, session_for)

    def _describe_collected(self, own: Paragraph | None) -> str:
        file = own.file if own is not None else PROGRAM
        return _("This paragraph is part of {file} and was not run here.").format(
            file=file or PROGRAM
        )

    def _forms(self, context: Context) -> Mapping[str, Any]:
        return paragraph_forms(context).to_json()

    def _run(
        self,
        text: str,
        context: Context,
        output: Output,
        note: list[Paragraph],
        own: Paragraph | None,
        stop: threading.Event,
    ) -> Result:
        session = self._session(context)
        while not session.lock.acquire(timeout=0.1):
            if stop.is_set():
                return Result(Code.ERROR, (Message(Kind.TEXT, _("Stopped before the start.")),))
        try:
            if session.kernel.start(
                lambda status: output.show([Message(Kind.TEXT, f"{status}\n")]), stop.is_set
            ):
                session.paragraph_names.clear()
                session.modules.clear()
            self._write_modules(session, note)
            buffer = OutputBuffer(output, output_limit(self.properties))
            execution = ExecutionOutput(buffer, session, _name(own, context))
            forms = session.context.forms = paragraph_forms(context)
            try:
                reply = session.kernel.run(align_lines(text), execution.handle, stop.is_set)
                succeeded = reply.get("status") == "ok"
                if own is not None:
                    record_exception(context.key, own.body, execution.describe_error(reply))
                if execution.handle_payload(reply.get("payload")):
                    session.kernel.end_process()
                    execution.output.write(_EXITED)
            except KernelDiedError as died:
                execution.output.write(f"{died}\n")
                succeeded = False
            messages = execution.output.messages()
            if succeeded and (saved := context.options.get("saveAs")):
                messages = (*messages, *self._save_table(saved, messages))
            code = Code.SUCCESS if succeeded else Code.ERROR
            return Result(code, tuple(messages), forms.to_json())
        finally:
            session.lock.release()

    def _save_table(self, name: str, messages: Sequence[Message]) -> list[Message]:
        """Share the last table of an output, as Zeppelin's other interpreters do."""
        tables = [message.data for message in messages if message.kind is Kind.TABLE]
        try:
            if not tables:
                raise ValueError(_("the paragraph shows no table"))
            self.server.resources.put(name, tables[-1])
        except ValueError as error:
            return [Message(Kind.TEXT, _("saveAs: {error}.").format(error=error) + "\n")]
        return []

    def _write_modules(self, session: PythonSession, note: list[Paragraph]) -> None:
        """Write the note's files for import in the session, as in a job."""
        try:
            cells = collect_cells(
                [_importable(item) for item in note if item.entry == "python" and item.file]
            )
            files: dict[str, list[Any]] = {}
            for cell in cells.cells():
                files.setdefault(cell.filename, []).append(cell)
            texts = {
                name: merge_cells(group).text for name, group in files.items() if name != PROGRAM
            }
        except SubmarineError:
            return  # `run` reports the error; this paragraph may still be valid
        texts |= dict.fromkeys(package_files(set(texts)), "")
        if texts == session.modules:
            return
        removed = sorted(session.modules.keys() - texts.keys())
        changed = {name: texts[name] for name in texts if texts[name] != session.modules.get(name)}
        session.modules = texts
        code = _module_code(session.kernel.modules, removed, changed)
        session.kernel.run(code, silent=True)


def _importable(item: Paragraph) -> Paragraph:
    """Return a paragraph whose import reports a form without a value."""
    try:
        item.check_forms()
    except UsageError as error:
        body = f"raise ImportError({str(error)!r})\n"
        return replace(item, body=body, unknown_form="")
    return item


def align_lines(text: str) -> str:
    """Change a paragraph's text so that line numbers are those of the paragraph.

    IPython removes blank lines at the top, such as the one in place of the interpreter's name, so
    this line becomes a comment. A cell magic must come first, so lines are counted from it.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.startswith("\n"):
        return text.lstrip(" \t")
    return text if text.lstrip().startswith("%%") else "#" + text


def _name(own: Paragraph | None, context: Context) -> str:
    if own is not None:
        title = f' "{own.title}"' if own.title else ""
        return _("Paragraph {number}{title}").format(number=own.number, title=title)
    return (
        _('Paragraph "{title}"').format(title=context.title)
        if context.title
        else _("This paragraph")
    )


def _module_code(directory: str, removed: list[str], changed: Mapping[str, str]) -> str:
    """Return code that writes and forgets modules, and their byte code, without other traces.

    Python compares a file with its byte code by size and second: after two changes within a second,
    the byte code of the first one would count as current.
    """
    modules = [name[:-3].replace("/", ".").removesuffix(".__init__") for name in changed]
    return (
        "def _submarine_modules():\n"
        "    import contextlib, importlib.util, os, pathlib, sys\n"
        f"    directory = pathlib.Path({directory!r})\n"
        f"    for name in {removed!r}:\n"
        "        with contextlib.suppress(OSError):\n"
        "            (directory / name).unlink()\n"
        f"    for name, text in {dict(changed)!r}.items():\n"
        "        path = directory / name\n"
        "        path.parent.mkdir(parents=True, exist_ok=True)\n"
        "        path.write_text(text, 'utf-8', 'replace')\n"
        "        with contextlib.suppress(OSError):\n"
        "            os.unlink(importlib.util.cache_from_source(str(path)))\n"
        f"    for name in {modules!r}:\n"
        "        sys.modules.pop(name, None)\n"
        "    importlib.invalidate_caches()\n"
        "_submarine_modules()\n"
        "del _submarine_modules"
    )


INTERPRETER = PythonInterpreter
