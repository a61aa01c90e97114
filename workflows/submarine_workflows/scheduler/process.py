"""Run one scheduled notebook: ``python -m submarine_workflows.scheduler.process``.

Orders come as one line of JSON on standard input, which then stays open: its end is the end of
whoever wants the run, by SIGKILL even, and counts as SIGTERM. Why the run failed goes to the
descriptor ``tell``. In jupyter-scheduler's database it writes only what nobody else is left to say:
that a run was ended whose process there is gone.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FAILED, USAGE = 1, 2
#: A pipe takes so much at once, whether or not anybody reads.
MAX_SAID = 4096
ENGINE = "submarine"
ALONE = "The run was ended: the process of the Jupyter server that waited for it is gone."


def main() -> int:
    """Run the notebook and export it; the exit code is papermill's, or that of the signal."""
    try:
        orders = json.loads(_line())
        source, output = Path(orders["input"]), Path(orders["output"])
    except (ValueError, LookupError, TypeError) as exc:
        print(f"The orders on standard input make no sense: {exc!r}.", file=sys.stderr)
        return USAGE
    threading.Thread(target=_until_alone, name="alone", daemon=True).start()
    stopped = False
    try:
        code, said = 0, _run(source, output, Path(orders["folder"]), orders.get("parameters") or {})
    except SystemExit as exc:
        code, said = (exc.code if isinstance(exc.code, int) else FAILED), ""
        stopped = True
    if said:
        code = FAILED
        print(said, file=sys.stderr)
        os.write(int(orders.get("tell") or 2), said.encode()[:MAX_SAID])
    if output.exists():  # whoever deletes a run takes its outputs with it
        exported = _export(output, orders.get("exports") or {})
        if stopped:
            _keep([output, *exported], Path(orders["kept"]))
    if stopped and orders.get("database"):
        _record_end(str(orders["database"]), str(orders.get("job")))
    return code


def _run(source: Path, output: Path, folder: Path, parameters: Mapping[str, Any]) -> str:
    """Why the run failed; empty: it did not."""
    import papermill

    try:
        papermill.execute_notebook(
            str(source),
            str(output),
            parameters=dict(parameters),
            engine_name=ENGINE,
            progress_bar=False,
            cwd=str(folder),
        )
    except Exception as exc:
        return str(exc).strip() or type(exc).__name__
    return ""


def _line() -> bytes:
    """The first line of standard input, read without Python's buffer and its lock."""
    pieces = []
    while piece := os.read(0, 1 << 16):
        pieces.append(piece)
        if piece.endswith(b"\n"):
            break
    return b"".join(pieces)


def _until_alone() -> None:
    """Wait for the end of standard input; nothing comes on it."""
    while os.read(0, 1 << 16):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _export(output: Path, formats: Mapping[str, str]) -> list[Path]:
    """What else was asked for; a format that fails takes nothing from the others."""
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
    """Copy what a stopped run has left to where a person finds it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copyfile(file, folder / file.name)
    except OSError as exc:
        print(f"What the stopped run has left stays in {files[0].parent}: {exc}", file=sys.stderr)


def _record_end(database: str, job_id: str) -> None:
    """Have the list of jobs say that the run has ended; what a stop has said there stays."""
    from jupyter_scheduler.models import Status
    from jupyter_scheduler.orm import Job, create_session

    with create_session(database)() as session:
        own = session.query(Job).filter(Job.job_id == job_id, Job.status == Status.IN_PROGRESS)
        own.update({"status": Status.FAILED, "status_message": ALONE})
        session.commit()


if __name__ == "__main__":
    sys.exit(main())
