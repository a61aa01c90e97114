"""Jobs as a server's index and board have them, for tests."""

from __future__ import annotations

from typing import Any

from submarine_jobs.tracking import IndexEntry, bare_record
from submarine_runtime.protocol import State


def job(number: int) -> str:
    return f"j-20261121-{number:04x}"


def known(number: int, state: State = State.RUNNING) -> IndexEntry:
    handle = {"application_id": f"application_1_{number:04}"}
    where = f"file:///jobs/202611/{job(number)}"
    row = IndexEntry(job(number), "j", "yarn", "default", where, float(number), state, handle)
    return IndexEntry(**{**vars(row), "record": bare_record(row)})


def row(number: int, state: str = "RUNNING", **more: Any) -> dict[str, Any]:
    return {"job_id": job(number), "state": state, "created": float(number), **more}
