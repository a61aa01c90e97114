"""Scheduled notebooks without a server: parameters, orders, the reason of a failure."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from submarine_workflows.headless import MAX_MESSAGE, why_failed
from submarine_workflows.headless.failures import ENDED
from submarine_workflows.scheduler.process import _record_end, value_of


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("3", 3),
        (" 0.5 ", 0.5),
        ("1e-3", 0.001),
        ("ada", "ada"),
        ('"ada"', "ada"),
        ("'3'", "3"),
        ("[1, 'two', None]", [1, "two", None]),
        ("{'lr': 0.1}", {"lr": 0.1}),
        ("True", True),
        ("true", True),
        ("null", None),
        ("2026-11-22", "2026-11-22"),
        ("hdfs:///data/{date}", "hdfs:///data/{date}"),
        ("", ""),
        ("__import__('os').system('true')", "__import__('os').system('true')"),
        # Text that JSON cannot represent stays the text that was typed.
        ("(1, 2)", "(1, 2)"),
        ("b'x'", "b'x'"),
        ("{1: 2}", "{1: 2}"),
        ("1e999", "1e999"),
        ("1j", "1j"),
        ("[" * 5000, "[" * 5000),
        (7, 7),
        (None, None),
    ],
)
def test_a_typed_parameter_means(typed: Any, meant: Any) -> None:
    found = value_of(typed)
    assert found == meant
    assert type(found) is type(meant)


@given(st.text())
def test_whatever_is_typed_can_be_sent(typed: str) -> None:
    value = value_of(typed)
    assert json.loads(json.dumps(value, allow_nan=False)) == value


def document(path: Path, *outputs: dict[str, Any]) -> Path:
    cell = {"cell_type": "code", "execution_count": 3, "outputs": list(outputs)}
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown"}, cell]}))
    return path


def test_a_failure_is_reported_by_its_first_error(tmp_path: Path) -> None:
    error = {
        "output_type": "error",
        "ename": "JobFailedError",
        "evalue": "Job \x1b[31mdigits\x1b[39m FAILED\u202e: " + "<b>" * 1000,
    }
    output_text = why_failed(document(tmp_path / "x.ipynb", {"output_type": "stream"}, error), 1)
    assert output_text.startswith("Cell [3]: JobFailedError: Job digits FAILED\ufffd: <b>")
    assert len(output_text) == MAX_MESSAGE


def test_an_ended_run_is_reported_by_its_end_and_not_by_the_interrupted_call(
    tmp_path: Path,
) -> None:
    errors = [
        {"output_type": "error", "ename": name, "evalue": output_text}
        for name, output_text in (
            ("KeyboardInterrupt", ""),
            (ENDED, "The run was stopped by SIGTERM."),
        )
    ]
    output_text = why_failed(document(tmp_path / "x.ipynb", *errors), 143)
    assert output_text.endswith("RunEnded: The run was stopped by SIGTERM.")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # jupyter-scheduler's own
@pytest.mark.parametrize(
    ("before", "after"),
    [("IN_PROGRESS", "FAILED"), ("STOPPED", "STOPPED"), ("STOPPING", "STOPPING")],
)
def test_a_run_whose_server_is_gone_says_so_itself(tmp_path: Path, before: str, after: str) -> None:
    from jupyter_scheduler.models import Status
    from jupyter_scheduler.orm import Job, create_session, create_tables

    database = f"sqlite:///{tmp_path}/jobs.sqlite"
    create_tables(database)
    with create_session(database)() as session:
        for name in ("its", "other"):
            session.add(
                Job(
                    job_id=name,
                    status=Status[before],
                    input_filename="a.ipynb",
                    runtime_environment_name="python",
                    name=name,
                )
            )
        session.commit()
    _record_end(database, "its")
    with create_session(database)() as session:
        found = {job.job_id: job.status for job in session.query(Job)}
    assert found == {"its": Status[after], "other": Status[before]}


def test_a_run_without_output_is_reported_by_its_exit_code(tmp_path: Path) -> None:
    assert "exit code 2" in why_failed(tmp_path / "never.ipynb", 2)
    assert why_failed(tmp_path / "never.ipynb", 1, "\x1b[1mKernel died\x1b[0m") == "Kernel died"
    assert "signal 9" in why_failed(document(tmp_path / "x.ipynb"), -9)
    for text in ("", "{", '{"cells": 3}', '{"cells": [3]}', '{"cells": [{"outputs": ["x"]}]}'):
        (tmp_path / "half.ipynb").write_text(text)
        assert "exit code 1" in why_failed(tmp_path / "half.ipynb", 1)


@pytest.mark.slow
@pytest.mark.parametrize("orders", [b"", b"{", b"[]\n", b'{"input": 3}\n'])
def test_orders_that_make_no_sense_are_refused(orders: bytes) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "submarine_workflows.scheduler.process"],
        input=orders,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 2
    assert b"is invalid" in ended.stderr
    assert b"Traceback" not in ended.stderr
