"""Publish to a real MLflow server, and credentials against a server of this test."""

from __future__ import annotations

import json
import socket
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.commands.grammar import execute
from submarine_jobs.errors import ClusterError, RefusedError, UsageError
from submarine_jobs.model import Profile
from submarine_jobs.trained_models.mlflow import Server
from tests.frontends import RecordingFrontend
from tests.local.models.mlflow_server import MLFLOW, mlflow_server
from tests.submission import submitting
from tests.unit.agent.recorded_training import TF2

TRAIN = """
import os
folder = os.environ["SUBMARINE_MODEL_DIR"]
os.makedirs(folder + "/sub dir")
for name, data in (("model.bin", b"x" * 300_000), ("sub dir/empty", b""), ("sub dir/é.txt", b"1")):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)
events = os.path.join(os.environ["SUBMARINE_TENSORBOARD_DIR"], "train")
os.makedirs(events)
with open(os.path.join(events, "events.out.tfevents.1.host.v2"), "wb") as file:
    file.write(EVENTS)
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    for name in ("URI", "TOKEN", "USERNAME", "PASSWORD", "SERVER_CERT_PATH"):
        monkeypatch.delenv(f"MLFLOW_TRACKING_{name}", raising=False)
    return Session(Profile(backend="local", state_dir=tmp_path / "state"))


def finished(session: Session) -> Job:
    with submitting(session) as submit:
        job = submit(
            TRAIN.replace("EVENTS", repr(TF2)), name="digits", params={"lr": 0.1, "layers": [1, 2]}
        )
        job.wait_success(90)
    job.save_model("best")
    return job


def ask(uri: str, path: str, value: Any = None, **query: str) -> Any:
    url = f"{uri}/api/2.0/mlflow/{path}?{urllib.parse.urlencode(query)}"
    data = json.dumps(value).encode() if value is not None else None
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


@pytest.mark.full
def test_a_job_and_its_model_in_a_real_server(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = finished(session)
    rows = [
        SampleRow(
            1000.0 + number, {"loss": 1.0 / (number + 1), "accuracy": 0.5, "train/epoch_loss": 9.0}
        )
        for number in range(700)
    ]
    monkeypatch.setattr("submarine_jobs.trained_models.mlflow.read_metrics", lambda *_: rows)
    frontend = RecordingFrontend(session=session)
    with mlflow_server(tmp_path / "mlflow", free_port()) as uri:
        words = ["publish", f"{job.id}@best", "--to", f"mlflow:{uri}", "--alias", "prod"]
        done = execute(words, frontend).value
        assert (done["model"], done["model_version"], done["already"]) == ("digits", "1", False)
        run = ask(uri, "runs/get", run_id=done["run_id"])["run"]
        assert run["info"]["status"] == "FINISHED"
        assert run["info"]["run_name"] == job.id
        params = {item["key"]: item["value"] for item in run["data"]["params"]}
        assert params == {"lr": "0.1", "layers": "[1, 2]"}
        tags = {item["key"]: item["value"] for item in run["data"]["tags"]}
        assert tags["submarine.bundle_digest"] == job.directory.spec().bundle_digest
        history = ask(
            uri, "metrics/get-history", run_id=done["run_id"], metric_key="loss", max_results="1000"
        )["metrics"]
        assert sorted((m["step"], m["value"]) for m in history) == [
            (number, 1.0 / (number + 1)) for number in range(700)
        ]
        # Scalars of event files have the steps of the training.
        key = "train/epoch_loss"
        history = ask(uri, "metrics/get-history", run_id=done["run_id"], metric_key=key)["metrics"]
        steps = sorted((m["step"], round(m["value"], 6)) for m in history)
        assert steps == [(0, 0.5), (1, 0.4), (2, 0.3)]
        version = ask(uri, "registered-models/alias", name="digits", alias="prod")["model_version"]
        assert (version["version"], version["status"]) == ("1", "READY")
        assert version["source"].startswith("mlflow-artifacts:/")
        assert {t["key"]: t["value"] for t in version["tags"]}["submarine.uri"].startswith(
            "file://"
        )
        folder = version["source"].partition(":/")[2]
        for path, data in (
            ("model.bin", b"x" * 300_000), ("sub dir/empty", b""), ("sub dir/é.txt", b"1"),
        ):  # fmt: skip
            url = f"{uri}/api/2.0/mlflow-artifacts/artifacts/{folder}/{path}"
            with urllib.request.urlopen(urllib.parse.quote(url, safe=":/"), timeout=30) as answer:
                assert answer.read() == data
        # The same again finds run and version; another version is of the same run.
        again = execute(words, frontend).value
        assert (again["already"], again["run_id"]) == (True, done["run_id"])
        assert again["model_version"] == "1"
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        final = execute(["publish", job.id, "--to", "mlflow", "--name", "other"], frontend).value
        assert (final["run_id"], final["model"]) == (done["run_id"], "other")


@pytest.mark.full
def test_a_server_without_a_store_of_files(session: Session, tmp_path: Path) -> None:
    """It knows only the address of the files, and refuses that of this machine."""
    job = finished(session)
    options = ("--no-serve-artifacts", "--default-artifact-root", str(tmp_path / "files"))
    with (
        mlflow_server(tmp_path / "mlflow", free_port(), *options) as uri,
        pytest.raises(RefusedError, match="MLFLOW_ALLOWED_HOST_ADDRESSED_ARTIFACT_SCHEMES=hdfs"),
    ):
        execute(["publish", job.id, "--to", f"mlflow:{uri}"], RecordingFrontend(session=session))


TRACKED = """
import mlflow
with mlflow.start_run() as run:
    mlflow.log_metric("loss", 0.5, step=3)
    mlflow.log_text("hello", "note.txt")
print(run.info.run_name)
"""


@pytest.mark.full
def test_the_run_of_a_program_that_uses_mlflow_is_an_output(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not MLFLOW.exists():
        pytest.skip("scripts/setup.sh mlflow makes .venv-mlflow")
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    with submitting(session) as submit:
        job = submit(TRACKED, name="digits", python=str(MLFLOW.with_name("python")))
        record = job.wait_success(240)
    assert record.missing == []
    stored = {path.partition("/mlruns/")[2] for path, _size in job.outputs()}
    metric = next(path for path in stored if path.endswith("/metrics/loss"))
    folder = job.download(tmp_path / "results", part="outputs") / "worker-0/mlruns"
    _time, value, step = (folder / metric).read_text().split()[:3]
    assert (float(value), int(step)) == (0.5, 3)
    note = metric.replace("metrics/loss", "artifacts/note.txt")
    assert (folder / note).read_text() == "hello"
    run = (folder / metric.replace("metrics/loss", "meta.yaml")).read_text()
    assert f"run_name: {job.id}-worker-0\n" in run
    names = [path.read_text() for path in folder.glob("*/meta.yaml")]
    assert any("name: digits" in text for text in names)


class SampleRow:
    def __init__(self, time: float, scalars: dict[str, float]) -> None:
        self.time, self.scalars = time, scalars


@pytest.fixture
def seen() -> list[tuple[str, str]]:
    """Path and credentials of each request."""
    return []


@pytest.fixture
def port(seen: list[tuple[str, str]]) -> Iterator[int]:
    """Port of a server that redirects `/there` to another address and refuses the rest."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append((self.path, self.headers.get("Authorization", "")))
            if self.path.startswith("/there"):
                self.send_response(302)
                self.send_header(
                    "Location", f"http://localhost:{self.connection.getsockname()[1]}/stolen"
                )
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            body = b'{"error_code": "UNAUTHENTICATED", "message": "who are you?"}'
            self.send_response(401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def test_credentials_go_to_the_named_server_only(
    port: int, seen: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "s3cret-token")
    monkeypatch.delenv("MLFLOW_TRACKING_USERNAME", raising=False)
    with pytest.raises(RefusedError, match=r"redirects to http://localhost") as error:
        Server(f"http://127.0.0.1:{port}/there").call("GET", "experiments/get-by-name")
    assert len(seen) == 1
    assert seen[0][1] == "Bearer s3cret-token"
    assert "s3cret" not in str(error.value)
    with pytest.raises(RefusedError, match=r"401 UNAUTHENTICATED\): who are you.*TOKEN"):
        Server(f"http://127.0.0.1:{port}").call("GET", "experiments/get-by-name")
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ada")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "pw")
    with pytest.raises(RefusedError):
        Server(f"http://127.0.0.1:{port}").call("GET", "experiments/get-by-name")
    assert seen[-1][1] == "Basic YWRhOnB3"


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClusterError, match="cannot be reached"):
        Server(f"http://127.0.0.1:{free_port()}").call("GET", "experiments/get-by-name")
    with pytest.raises(UsageError, match="No MLflow server is named"):
        Server("")
    monkeypatch.setenv("MLFLOW_TRACKING_SERVER_CERT_PATH", "/nowhere.pem")
    with pytest.raises(UsageError, match="SERVER_CERT_PATH cannot be read"):
        Server("https://localhost")
