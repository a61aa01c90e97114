"""The job's page as text: a file beside the logs of its container, which YARN keeps with them."""

from __future__ import annotations

import os
import time
from typing import Any, Mapping

from submarine_runtime.files import share_log

#: Sorts before the logs of the container.
FILE = "submarine-job.txt"
_JOB = (
    *("job_id", "name", "state", "reason", "detail", "user", "queue", "application_id"),
    *("created", "finished", "exit_code", "progress", "job_dir"),
)
_TASK = (
    *("role", "state", "reason", "detail", "host", "container_id", "image", "requested"),
    *("cpu_seconds", "memory_peak", "gpus", "gpu_percent", "gpu_memory", "started", "finished"),
    *("exit_code", "progress", "restarts", "log_url"),
)
_TIMES = ("created", "started", "finished")
_MAX_VALUE, _MAX_TASKS, _MAX_FAILURE = 2000, 1000, 20_000


def write_text(job: Mapping[str, Any]) -> None:
    """Write the text to the log directory of this container.

    Raises
    ------
    OSError, KeyError
        If this is not possible.
    """
    directory = os.environ["LOG_DIRS"].split(",")[0]
    text = render_text(job).encode("utf-8", "replace")
    with open(os.path.join(directory, FILE), "wb") as file:
        share_log(file.fileno(), directory)
        file.write(text)


def render_text(job: Mapping[str, Any]) -> str:
    """Return one line for each fact of the job, its tasks, outputs, links and error.

    Parameters
    ----------
    job
        As for ``render_page``.
    """
    requested = (job.get("resources") or {}).get("requested") or {}
    images = job.get("images") or {}
    lines = _lines(job, _JOB, "")
    for task in list(job.get("tasks") or ())[:_MAX_TASKS]:
        role = task.get("role")
        lines.append(f"\n{task.get('task')}")
        more = {"image": images.get(role), "requested": requested.get(role)}
        lines += _lines({**task, **more}, _TASK, "  ")
    for title, key in (("Saved outputs", "saved_outputs"), ("Warnings", "warnings")):
        entries = job.get(key) or ()
        lines += (
            [f"\n{title}", *(f"  {_value(key, entry)}" for entry in entries)] if entries else []
        )
    links = job.get("links") or {}
    lines += ["\nLinks", *(f"  {k}: {_value(k, v)}" for k, v in links.items())] if links else []
    failure = (job.get("failure") or {}).get("text")
    lines += ["\nError", str(failure)[-_MAX_FAILURE:]] if failure else []
    return "\n".join(lines) + "\n"


def _lines(values: Mapping[str, Any], keys: tuple[str, ...], indent: str) -> list[str]:
    return [
        f"{indent}{key}: {_value(key, values[key])}"
        for key in keys
        if values.get(key) not in (None, "", [], {})
    ]


def _value(key: str, value: Any) -> str:
    if key in _TIMES and isinstance(value, (int, float)):
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(value))
    if isinstance(value, Mapping):
        return ", ".join(f"{k}={v}" for k, v in value.items())[:_MAX_VALUE]
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return text[:_MAX_VALUE].replace("\n", " ")
