"""Run one scheduled notebook: ``python -m submarine_workflows.scheduler.process``.

The request is one line of JSON on standard input, which then stays open. End of file means that the
requesting process has ended, also by SIGKILL, and is handled like SIGTERM. The reason of a failure
is written to the descriptor ``report_to``. The process writes to jupyter-scheduler's database only
to record the end of a run after its process there has ended.
"""

from __future__ import annotations

import ast
import json
import math
import os
import shutil
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from submarine_runtime.translation import _

FAILED, USAGE = 1, 2
#: A pipe accepts this many bytes without a reader.
MAX_REASON = 4096
ENGINE = "submarine"
_CONSTANTS = {"true": True, "false": False, "null": None}
MAX_LITERAL = 100_000
ABANDONED = _(
    "The run was stopped: the process of the Jupyter server that waited for it has ended."
)


def main() -> int:
    """Run and export the notebook; return papermill's exit code, or that of the signal."""
    try:
        request = json.loads(_line())
        source, output = Path(request["input"]), Path(request["output"])
    except (ValueError, LookupError, TypeError) as exc:
        print(f"The request on standard input is invalid: {exc!r}.", file=sys.stderr)
        return USAGE
    threading.Thread(target=_stop_at_end_of_input, name="stdin", daemon=True).start()
    stopped = False
    try:
        code, reason = (
            0,
            _run(source, output, Path(request["folder"]), request.get("parameters") or {}),
        )
    except SystemExit as exc:
        code, reason = (exc.code if isinstance(exc.code, int) else FAILED), ""
        stopped = True
    if reason:
        code = FAILED
        print(reason, file=sys.stderr)
        os.write(int(request.get("report_to") or 2), reason.encode()[:MAX_REASON])
    if output.exists():  # deleting a run deletes its outputs
        exported = _export(output, request.get("exports") or {})
        if stopped:
            _keep([output, *exported], Path(request["stopped_outputs"]))
    if stopped and request.get("database"):
        _record_end(str(request["database"]), str(request.get("job")))
    return code


def _run(source: Path, output: Path, folder: Path, parameters: Mapping[str, Any]) -> str:
    """Return the reason of a failure; empty on success."""
    # cost: papermill (0.5 s), after this process can be stopped.
    import papermill

    try:
        papermill.execute_notebook(
            str(source),
            str(output),
            parameters={name: value_of(typed) for name, typed in parameters.items()},
            engine_name=ENGINE,
            progress_bar=False,
            cwd=str(folder),
        )
    except Exception as exc:
        return str(exc).strip() or type(exc).__name__
    return ""


def value_of(typed: Any) -> Any:
    """Return the value of ``typed``, which can be encoded as JSON.

    ``0.1``, ``[1, 2]``, ``"ada"`` (with quotes), ``None`` and ``true`` are converted; any other
    text is returned unchanged, as are values that are not text.
    """
    if not isinstance(typed, str):
        return typed
    text = typed.strip()
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if len(text) > MAX_LITERAL:
        return typed
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return typed
    return value if _is_json(value) else typed


def _is_json(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_json(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(k, str) and _is_json(v) for k, v in value.items())
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, (str, int, bool))


def _line() -> bytes:
    """Read the first line of standard input without Python's buffer and its lock."""
    pieces = []
    while piece := os.read(0, 1 << 16):
        pieces.append(piece)
        if piece.endswith(b"\n"):
            break
    return b"".join(pieces)


def _stop_at_end_of_input() -> None:
    """Wait for the end of standard input, then send SIGTERM to this process."""
    while os.read(0, 1 << 16):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _export(output: Path, formats: Mapping[str, str]) -> list[Path]:
    """Export the notebook to the requested formats; a failed format does not affect the others."""
    # cost: nbconvert, which only requested exports need.
    import nbformat
    from nbconvert import get_exporter

    exported = []
    for name, path in formats.items():
        try:
            document = nbformat.read(output, as_version=4)
            exporter = get_exporter(name)()  # type: ignore[no-untyped-call]
            text, _ = exporter.from_notebook_node(document)
            Path(path).write_text(text, encoding="utf-8")
            exported.append(Path(path))
        except Exception as exc:
            print(f"{output.name} was not exported as {name}: {exc}", file=sys.stderr)
    return exported


def _keep(files: list[Path], folder: Path) -> None:
    """Copy the outputs of a stopped run to the folder where JupyterLab offers them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copyfile(file, folder / file.name)
    except OSError as exc:
        print(f"The outputs of the stopped run remain in {files[0].parent}: {exc}", file=sys.stderr)


def _record_end(database: str, job_id: str) -> None:
    """Record the end of the run in the database, unless a stop has already been recorded."""
    # cost: jupyter_scheduler with SQLAlchemy, which only a stopped run needs.
    from jupyter_scheduler.models import Status
    from jupyter_scheduler.orm import Job, create_session

    with create_session(database)() as session:
        own = session.query(Job).filter(Job.job_id == job_id, Job.status == Status.IN_PROGRESS)
        own.update({"status": Status.FAILED, "status_message": ABANDONED})
        session.commit()


if __name__ == "__main__":
    sys.exit(main())
