"""The thread that serves the job's page and reports the progress to the application master."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_runtime.network import bind_port
from submarine_runtime.protocol import JobRecord, JobSpec, JobStore, Role, State, TaskRecord
from submarine_runtime.record import Status
from submarine_runtime.yarn import PageThread
from submarine_runtime.yarn.page import file_browser
from tests.unit.yarn.skein_master import Master, running_master
from tests.waiting import until

WEBHDFS = JobStore("webhdfs", "/jobs/digits", webhdfs=["http://nn1:9870", "http://nn2:9870"])


@pytest.fixture
def master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Master]:
    with running_master(tmp_path) as made:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("SKEIN_APPMASTER_ADDRESS", made.address)
        monkeypatch.delenv("SKEIN_CONTAINER_ID", raising=False)
        yield made


def page_thread(status: Status, sentences: list[str]) -> PageThread:
    spec = JobSpec("digits", "yarn", roles=(Role(docker_image="lab/torch:2"),))
    return PageThread(
        lambda: status.to_json(events=False),
        lambda: status.progress,
        spec,
        WEBHDFS,
        bind_port,
        sentences.append,
    )


def running_status() -> Status:
    task = TaskRecord("worker:0", "worker", 0, state=State.RUNNING)
    return Status(JobRecord("digits-1a2b", "digits", State.RUNNING, tasks=[task]))


def test_the_master_gets_the_page_and_the_progress(
    master: Master, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOG_DIRS", f"{tmp_path},/nowhere")
    status, sentences = running_status(), list[str]()
    status.set_record(progress=0.25)
    thread = page_thread(status, sentences)
    thread.start()
    until(lambda: master.progress, "progress", 20)
    assert sentences == ["The job is on its YARN page."]
    (page,) = master.pages
    assert (page["route"], page["link_name"]) == ("job", "Submarine job")
    with urllib.request.urlopen(page["target"], timeout=20) as reply:
        text = reply.read().decode()
    assert "lab/torch:2" in text
    status.set_record(progress=1.0)
    thread.finish()
    assert master.progress == [0.25, 1.0]
    text = (tmp_path / "submarine-job.txt").read_text()
    assert "job_id: digits-1a2b\n" in text
    assert "\nworker:0\n  role: worker\n  state: RUNNING\n  image: lab/torch:2\n" in text


def test_a_job_without_a_master_reports_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKEIN_APPMASTER_ADDRESS", "127.0.0.1:1")
    sentences: list[str] = []
    thread = page_thread(running_status(), sentences)
    thread.start()
    thread.finish()
    (sentence,) = sentences
    assert sentence.startswith("There is no page on YARN: The application master does not answer")


def test_a_master_that_ends_ends_the_thread(master: Master) -> None:
    status, sentences = running_status(), list[str]()
    thread = page_thread(status, sentences)
    thread.start()
    until(lambda: master.pages, "page", 20)
    master.stop()
    status.set_record(progress=0.5)
    thread.finish()
    assert sentences == ["The job is on its YARN page."]


def test_only_a_namenode_has_a_file_browser() -> None:
    assert file_browser(WEBHDFS) == "http://nn1:9870/explorer.html#"
    assert file_browser(JobStore("local", "/jobs")) == ""
    assert file_browser(JobStore("webhdfs", "/jobs", webhdfs=["http://fs"], gateway=True)) == ""
