"""`submarine_data` in the programs of local jobs whose Python does not have it."""

from __future__ import annotations

import os
import sys

import pytest

from submarine_jobs.client import Session
from tests.submission import Submit

#: The interpreter that virtual environments are made of: it has no package of this project.
BARE_PYTHON = os.path.realpath(sys.executable)
PRINTS = """\
import sys
import submarine_data
import submarine_runtime.storage
from submarine_data import DataError, open_file
try:
    open_file("hdfs:///nothing")
except DataError as exc:
    print(exc)
print(sys.path[1] in submarine_data.__file__, submarine_data.__file__)
print(sys.path[1] in submarine_runtime.storage.__file__, flush=True)
"""


@pytest.fixture(autouse=True)
def no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONPATH", "HADOOP_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("instances", [1, 2])
def test_each_task_imports_it(submit: Submit, session: Session, instances: int) -> None:
    job = submit(PRINTS, python=BARE_PYTHON, instances=instances)
    job.wait_success(60)
    for number in range(instances):
        lines = job.log(task=f"worker:{number}").data.decode().splitlines()
        assert "names no host, and no default file system is configured" in lines[0]
        assert lines[1].startswith("True ")
        assert "submarine_data.zip" in lines[1]
        assert lines[2] == "True"
    # The same package serves all jobs of the job root.
    storage, root = session.backend().job_root()
    names = [entry.name for entry in storage.list_directory(f"{root}/cache")]
    assert len([name for name in names if name.startswith("submarine_data-")]) == 1


def test_a_command_imports_it(submit: Submit) -> None:
    command = f"{BARE_PYTHON} -c 'import submarine_data; print(submarine_data.__file__)'"
    job = submit("", command=command)
    job.wait_success(60)
    assert "submarine_data.zip" in job.log().data.decode()


def test_a_program_without_it_gets_no_path(submit: Submit) -> None:
    job = submit("import sys; print(any('submarine_data' in place for place in sys.path))")
    job.wait_success(60)
    assert job.log().data.decode().split() == ["False"]
