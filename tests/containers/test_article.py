"""The command line of the article, with an image for each role, as its user follows it."""

from __future__ import annotations

import base64
import html
import io
import json
import re
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from tests.cluster.yarn.test_yarn_page import cells
from tests.containers.conftest import Containers, Outcome
from tests.containers.hadoop import IMAGE
from tests.containers.tensorboard_image import TENSORBOARD_IMAGE, make_image, python_differs
from tests.waiting import until

OTHER = "local/other:1"
IMAGES = {"worker": IMAGE, "ps": OTHER, "tensorboard": TENSORBOARD_IMAGE}
LIMIT = 240.0
_RM = "http://node0:8088"
_REFRESH = re.compile(r'<meta http-equiv="refresh" content="0; url=([^"]*)"')
WORKER = (
    "test ! -e /other-image && echo input %input_path% && echo role worker"
    " && echo EVENTS | base64 -d > $SUBMARINE_TENSORBOARD_DIR/events.out.tfevents.1.here"
    " && until test -e /tmp/go; do sleep 0.2; done"
)


@pytest.fixture(scope="module")
def images(containers: Containers) -> None:
    """Make an image for each role: the same file system with a mark, and one with TensorBoard."""
    if reason := python_differs(containers):
        pytest.skip(reason)
    make_image(containers)
    containers.docker("run", "--name=marked", "--net=none", IMAGE, "touch", "/other-image")
    containers.docker("commit", "marked", OTHER)
    containers.docker("rm", "marked")


def _events() -> str:
    """Return an event file with one value, in base64."""
    value = Summary.Value(tag="loss", simple_value=0.5)
    file = io.BytesIO()
    RecordWriter(file).write(Event(wall_time=1, file_version="brain.Event:2").SerializeToString())
    event = Event(step=1, wall_time=2, summary=Summary(value=[value]))
    RecordWriter(file).write(event.SerializeToString())
    return base64.b64encode(file.getvalue()).decode()


@pytest.fixture
def job(containers: Containers, images: None) -> Iterator[Outcome]:
    """The job of the article, once all of its tasks run; its workers wait for a file."""
    containers.cell.write("/home/alice/data.txt", "a b c\n")
    containers.hdfs("dfs", "-put", "-f", "/home/alice/data.txt", "/user/alice/data.txt")
    status, output = containers.submarine(
        "job", "run", "--name", "tf-job-001", "--docker_image", IMAGE,
        "--input_path", "hdfs://node0:9000/user/alice/data.txt",
        "--checkpoint_path", "hdfs://node0:9000/user/alice/checkpoints",
        "--num_workers", "2", "--worker_resources", "memory=256M,vcores=1,gpu=2",
        "--worker_launch_cmd", WORKER.replace("EVENTS", _events()),
        "--num_ps", "2", "--ps_docker_image", OTHER, "--ps_resources", "memory=256M,vcores=1",
        "--ps_launch_cmd", "test -e /other-image && echo role ps && sleep 600",
        "--tensorboard", "--tensorboard_docker_image", TENSORBOARD_IMAGE,
        "--tensorboard_resources", "memory=1G,vcores=1",
        "--quicklink", "Zeppelin_Notebook=http://master-0:8080",
    )  # fmt: skip
    found = re.search(r"(tf-job-001-\d{8}-[0-9a-f]{4})", output)
    assert found is not None, output
    submitted = Outcome(status, output, found.group(1))
    try:
        yield submitted
    finally:
        containers.submarine("cancel", submitted.job_id, check=False)


def _tensorboard(containers: Containers, job: Outcome) -> str:
    """Return the address of the TensorBoard of the job, once it is in the record."""
    found: list[str] = []

    def linked() -> bool:
        record = containers.show(job)
        assert record["state"] not in ("FAILED", "CANCELLED"), record["detail"]
        found.append(record["links"].get("TensorBoard", ""))
        return bool(found[-1])

    until(linked, "the link to TensorBoard", LIMIT)
    return found[-1]


def _page(containers: Containers, application: str) -> str:
    """Return what a browser shows at the tracking URL, which leads to the master's first page."""
    url = f"{_RM}/proxy/{application}/"
    first = _REFRESH.search(containers.fetch(url))
    return containers.fetch(urljoin(url, html.unescape(first[1]))) if first else ""


def _text_after_the_end(containers: Containers, application: str) -> str:
    app = json.loads(containers.fetch(f"{_RM}/ws/v1/cluster/apps/{application}"))["app"]
    return containers.fetch(app["trackingUrl"]) if app["state"] == "FINISHED" else ""


def test_the_command_of_the_article_runs_each_role_in_its_image(
    containers: Containers, job: Outcome
) -> None:
    url = _tensorboard(containers, job)
    until(lambda: "TensorBoard" in containers.fetch(url), "TensorBoard", LIMIT)
    until(lambda: "worker-0" in containers.fetch(f"{url}data/runs"), "the run", LIMIT)
    scalars = containers.fetch(f"{url}data/plugin/scalars/scalars?run=worker-0&tag=loss")
    assert [point[1:] for point in json.loads(scalars)] == [[1, 0.5]]

    application = containers.show(job)["application_id"]
    pages: list[str] = []

    def shown() -> bool:
        pages.append(_page(containers, application))
        return cells(pages[-1], "State") == ["RUNNING"] * 5

    until(shown, "the page with five tasks", LIMIT)
    page = pages[-1]
    names = ["ps:0", "ps:1", "worker:0", "worker:1", "tensorboard:0"]
    assert sorted(cells(page, "Task")) == sorted(names)
    roles = cells(page, "Role")
    assert cells(page, "Image") == [IMAGES[role] for role in roles]
    assert cells(page, "Node") == ["node0"] * 5
    # Docker itself has each container of the page, and runs it from the image of the page.
    running = containers.docker("ps", "--format", "{{.Names}} {{.Image}}").split("\n")
    containers_of_page = cells(page, "Container")
    placed = dict(zip(containers_of_page, roles, strict=True))
    assert {f"{name} {IMAGES[role]}" for name, role in placed.items()} <= set(running)
    links = re.findall(r'href="([^"]*/node/containerlogs/[^"]*)"', page)
    assert len(links) == 5
    for name, link in zip(containers_of_page, links, strict=True):
        assert f"Logs for {name}" in containers.fetch(html.unescape(link))
    assert '">Zeppelin_Notebook</a>' in page
    assert f'href="{url}"' in page

    for name, role in placed.items():
        if role == "worker":
            containers.docker("exec", name, "touch", "/tmp/go")
    until(lambda: containers.show(job)["state"] == "SUCCEEDED", "the end of the job", LIMIT)
    texts: list[str] = []

    def kept() -> bool:
        texts.append(_text_after_the_end(containers, application))
        return f"job_id: {job.job_id}" in texts[-1]

    until(kept, "the text at the tracking URL after the end", LIMIT)
    for name, role in placed.items():
        assert f"container_id: {name}\n" in texts[-1]
        assert texts[-1].count(f"image: {IMAGES[role]}\n") == roles.count(role)
        assert texts[-1].count(f"role: {role}\n") == roles.count(role)
    assert texts[-1].count("log_url: http") == 5
    assert "role worker" in containers.log(job, "worker:1")
    assert "input hdfs://" in containers.log(job, "worker:1")
    assert "role ps" in containers.log(job, "ps:1")
    assert containers.show(job)["links"]["Zeppelin_Notebook"] == "http://node0:8080"
