"""`submarine workflow await`: data that comes, that never comes, and storages that are away."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import pytest

from submarine_jobs.commands import complete, execute
from submarine_jobs.config import Config
from submarine_jobs.errors import StorageError, UsageError
from submarine_jobs.frontends import Frontend
from submarine_workflows.commands.await_data import DataMissingError, fill_parameters, wait_for_data
from submarine_workflows.locations import HdfsLocation


def wait(url: str, timeout: float = 60.0, said: list[str] | None = None) -> float:
    return wait_for_data(url, timeout, (said if said is not None else []).append, first=0.02)


def test_what_is_there_is_not_waited_for(tmp_path):
    said: list[str] = []
    wait(str(tmp_path), said=said)
    wait(f"file://{tmp_path}", said=said)
    assert said == []


@pytest.mark.slow
def test_what_comes_later_is_waited_for_and_said_once(tmp_path):
    said: list[str] = []
    timer = threading.Timer(0.3, (tmp_path / "_SUCCESS").touch)
    timer.start()
    wait(str(tmp_path / "_SUCCESS"), said=said)
    timer.join()
    assert said == [f"Waiting for {tmp_path}/_SUCCESS, at most 1 min 00 s …"]


def test_data_that_does_not_come_in_time_is_named(tmp_path):
    with pytest.raises(DataMissingError, match="does not exist after") as late:
        wait(str(tmp_path / "x"), 0.1)
    assert late.value.exit_code == 124


@pytest.mark.slow
def test_any_file_system_of_fsspec_is_looked_at():
    memory = fsspec.filesystem("memory")
    timer = threading.Timer(0.2, lambda: memory.pipe_file("/late/x", b""))
    timer.start()
    wait("memory://late/x")
    timer.join()


def test_a_storage_that_is_away_is_no_failure(monkeypatch):
    answers: list[bool | Exception] = [
        StorageError("The NameNode does not answer."),
        TimeoutError("no answer"),
        False,
        True,
    ]

    class Away:
        def exists(self) -> bool:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

    monkeypatch.setattr(
        "submarine_workflows.commands.await_data.find_location", lambda *a, **k: Away()
    )
    said: list[str] = []
    wait("hdfs://ann:hunter22@nn/x", said=said)
    assert answers == []
    assert said[0] == "The NameNode does not answer. The check is repeated."
    assert any("can be checked again" in line for line in said)
    assert "hunter22" not in " ".join(said)


def test_a_storage_that_stays_away_is_named_at_the_end():
    with pytest.raises(DataMissingError, match="The last check failed: "):
        wait("webhdfs://127.0.0.1:9/x", 0.1)


@pytest.mark.parametrize("url", ["nosuch://x/y", "hdfs:///"])
def test_what_could_never_be_there_is_refused_at_once(url):
    with pytest.raises(UsageError):
        wait(url)


def test_names_in_braces_have_values():
    assert fill_parameters("s3://b/{date}/${hour}/x", {"date": "1", "hour": "2"}) == "s3://b/1/2/x"
    with pytest.raises(UsageError, match=r"s3://b/\{date\}: \$\{date\} has no value"):
        fill_parameters("s3://b/{date}", {})


def test_the_verb(tmp_path):
    (tmp_path / "5").touch()
    outcome = execute(["workflow", "await", f"{tmp_path}/{{day}}", "-p", "day", "5"], Frontend())
    assert (outcome.exit_code, outcome.value["url"]) == (0, f"{tmp_path}/5")


def test_tab_offers_verbs_files_nodes_and_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "w.flow").write_text("nodes: [{name: only, type: noop}]")
    frontend = Frontend()
    assert {"run", "status", "logs", "cancel", "history", "await"} <= set(
        complete(["workflow", ""], frontend)
    )
    assert complete(["workflow", "run", "w"], frontend) == ["w.flow"]
    assert complete(["workflow", "run", "w.flow", ""], frontend) == ["only"]
    assert execute(["workflow", "run", "w.flow", "--runs", "r"], frontend).exit_code == 0
    words = complete(["workflow", "status", "--runs", "r", ""], frontend)
    assert words[:2] == ["w", "last"]
    assert complete(["workflow", "logs", "--runs", "r", "w", ""], frontend) == ["only"]
    assert complete(["workflow", "run", "none.flow", ""], frontend) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run"], "No workflow is given"),
        (["run", "none.flow"], "none.flow cannot be read: No such .* There is w.flow beside it"),
        (["run", "w.flow", "--max-parallel", "0"], "number of nodes"),
        (["run", "w.flow", "--notify", "/no/such/program"], "not an executable program"),
        (["run", "--resume"], "No workflow has been run"),
        (["status", "gone"], "No run, and no workflow"),
        (["logs", "gone"], "No run, and no workflow"),
        (["cancel", "gone"], "No run, and no workflow"),
        (["history", "gone"], "No run, and no workflow"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_sentence(tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.flow").write_text("nodes: [{name: a, type: noop}]")
    with pytest.raises(UsageError, match=sentence):
        execute(["workflow", *words, "--runs", "r"], Frontend())


def test_hdfs_is_asked_as_whom_the_frontend_acts_and_nothing_else_needs_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str | None]] = []
    configured: list[None] = []

    def exists(place: HdfsLocation) -> bool:
        asked.append((place.url, place._profile().user))
        return True

    class Ada(Frontend):
        def config(self, options: Mapping[str, Any] | None = None) -> Config:
            configured.append(None)
            found = super().config(options)
            return replace(found, profile=replace(found.profile, user="ada"))

    monkeypatch.setattr(HdfsLocation, "exists", exists)
    execute(["workflow", "await", str(tmp_path)], Ada())
    assert not configured
    execute(["workflow", "await", "hdfs:///data/_SUCCESS"], Ada())
    assert asked == [("hdfs:///data/_SUCCESS", "ada")]
