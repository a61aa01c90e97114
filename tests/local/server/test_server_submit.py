"""``POST jobs`` of a real server: checks, request ids, limits, the examples in Java and Scala."""

from __future__ import annotations

import io
import json
import shutil
import socket
import stat
import subprocess
import threading
import time
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.client import Session
from tests.local.server.jupyter_server import API, BASE, TOKEN, Answer, Server
from tests.spark import spark_home

EXAMPLES = Path(__file__).parents[3] / "examples" / "rest"
PROGRAM = {"train.py": "import data\nprint(data.TEXT)\n", "data.py": "TEXT = 'grüße'\n"}


@pytest.fixture(scope="module", autouse=True)
def ended(server: Server, session: Session) -> Iterator[None]:
    """End the jobs of the server's requests."""
    yield
    for record in session.jobs():
        job = session.job(record.job_id)
        if not record.state.ended:
            job.cancel("end of the test")
        job.wait(timeout=60)


def zipped(files: Mapping[str, str] = PROGRAM, day: int = 1) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            info = zipfile.ZipInfo(name, (2026, 1, day, 0, 0, 0))
            archive.writestr(info, text, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def body(options: Any, bundle: bytes | None, boundary: str = "b1") -> bytes:
    text = options if isinstance(options, str) else json.dumps(options)
    parts = [("options", text.encode())] + ([("bundle", bundle)] if bundle is not None else [])
    found = b""
    for name, content in parts:
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"'
        found += head.encode() + b'; filename="x"\r\n\r\n' + content + b"\r\n"
    return found + f"--{boundary}--\r\n".encode()


def post(
    server: Server, options: Any, bundle: bytes | None = b"", request_id: str = "", **more: Any
) -> Answer:
    headers = {"Content_Type": "multipart/form-data; boundary=b1", **more}
    if request_id:
        headers["Idempotency_Key"] = request_id
    content = body(options, zipped() if bundle == b"" else bundle)
    return server.call("POST", "jobs", content, **headers)


def state(server: Server, job_id: str) -> str:
    view = server.until(
        f"jobs/{job_id}", lambda it: it["record"]["state"] in ("SUCCEEDED", "FAILED")
    )
    return str(view["record"]["state"])


def total(server: Server) -> int:
    return int(server.call("GET", "jobs").json["total"])


def test_a_bundle_runs_with_its_options(server: Server) -> None:
    options = {"program": "train.py", "name": "Trüb <b>", "env": {"A": "1"}, "memory": "512M"}
    answer = post(server, options)
    assert answer.status == 201, answer.data
    assert answer.json["repeated"] is False
    job_id = answer.json["job_id"]
    assert answer.headers["location"] == f"{API}jobs/{job_id}"
    assert state(server, job_id) == "SUCCEEDED"
    log = server.call("GET", f"jobs/{job_id}/log?stream=stdout").data.decode()
    assert "grüße" in log
    record = server.call("GET", f"jobs/{job_id}").json["record"]
    assert record["name"] == "Trüb <b>"


def test_a_command_needs_no_bundle_and_arguments_are_text(server: Server) -> None:
    answer = post(server, {"name": "c", "worker_launch_cmd": "echo --x"}, None)
    assert answer.status == 201, answer.data
    assert state(server, answer.json["job_id"]) == "SUCCEEDED"
    program = {"main.py": "import sys; print(sys.argv[1:])"}
    answer = post(server, {"args": ["--wait", "a b"]}, zipped(program))
    assert state(server, answer.json["job_id"]) == "SUCCEEDED"
    log = server.call("GET", f"jobs/{answer.json['job_id']}/log?stream=stdout").data
    assert b"['--wait', 'a b']" in log


def test_a_repeated_request_has_one_job(server: Server) -> None:
    request_id = str(uuid.uuid4())
    options = {"program": "train.py", "name": "once"}
    first = post(server, options, zipped(day=1), request_id)
    assert (first.status, first.json["repeated"]) == (201, False)
    # The zip has other times: the content is the same.
    second = post(server, options, zipped(day=2), request_id)
    assert (second.status, second.json["repeated"]) == (201, True)
    assert second.json["job_id"] == first.json["job_id"]
    for changed in (({"program": "train.py"}, PROGRAM), (options, {**PROGRAM, "more.py": ""})):
        answer = post(server, changed[0], zipped(changed[1]), request_id)
        assert (answer.status, answer.json["code"]) == (422, "request_id"), answer.data
        assert "another content" in answer.json["error"]
    # A failed job, too, is that of its request.
    failing = zipped({"main.py": "raise SystemExit(3)"})
    failed = post(server, {}, failing, "failing").json["job_id"]
    assert state(server, failed) == "FAILED"
    assert post(server, {}, failing, "failing").json["job_id"] == failed


@pytest.mark.full
def test_a_request_is_known_after_a_restart_of_the_server(server: Server) -> None:
    options = {"program": "train.py", "name": "restarted"}
    first = post(server, options, request_id="restarted")
    assert server.stop()
    server.start()
    second = post(server, options, request_id="restarted")
    assert (second.status, second.json["repeated"]) == (201, True)
    assert second.json["job_id"] == first.json["job_id"]
    assert post(server, {"program": "train.py"}, request_id="restarted").status == 422
    assert server.call("GET", "jobs?text=restarted").json["total"] == 1


def test_requests_at_the_same_time_share_one_job(server: Server) -> None:
    answers: list[Answer] = []
    options = {"program": "train.py", "name": "together"}

    def send() -> None:
        answers.append(post(server, options, request_id="the-same"))

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    other = post(server, {**options, "name": "different"}, request_id="the-same")
    for thread in threads:
        thread.join()
    # Whichever came first has the id.
    found = [*answers, other]
    jobs = {answer.json["job_id"] for answer in found if answer.status == 201}
    assert len(jobs) == 1
    assert {answer.status for answer in found} == {201, 422}
    names = ("together", "different")
    assert sum(server.call("GET", f"jobs?text={name}").json["total"] for name in names) == 1


def with_link() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo("main.py")
        info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("options", "bundle", "error"),
    [
        ({}, zipped({"../main.py": ""}), "out of the program's directory"),
        ({}, zipped({"/main.py": ""}), "out of the program's directory"),
        ({}, zipped({"a/../../main.py": ""}), "out of the program's directory"),
        ({}, zipped({"a\\main.py": ""}), "out of the program's directory"),
        ({}, with_link(), "link or a device"),
        ({}, zipped({".submarine/x": "", "main.py": ""}), "reserved"),
        ({}, zipped({"json.py": ""}), "hides the module json"),
        ({}, zipped({"a": "", "a/b.py": ""}), "below a file"),
        ({}, zipped({"ma\nin.py": ""}), "control characters"),
        ({}, zipped({"x.py": "", "y.py": ""}), "none is main.py"),
        ({}, b"not a zip", "not a zip file"),
        ({}, zipped()[:-30], "not a zip file"),
        ({}, zipped({}), "has no file"),
        ({"program": "../train.py"}, zipped(), "no file ../train.py"),
        ({"program": "train.py"}, None, "has no bundle"),
        ({}, None, "no program"),
        ({"program": "train.py", "wait": True}, zipped(), "not available in a request"),
        ({"program": "train.py", "dry_run": True}, zipped(), "not available in a request"),
        ({"program": "train.py", "execute": True}, zipped(), "not an option of run"),
        ({"program": "train.py", "<b>": 1}, zipped(), "<b> is not an option of run"),
        ({"program": "train.py", "spread": "--help"}, zipped(), "true or false"),
        ({"program": "train.py", "env": {"A": "a\0b"}}, zipped(), "NUL"),
        ({"program": "train.py", "memory": "--help"}, zipped(), "--memory"),
        ({"program": "train.py", "memory": {"a": {}}}, zipped(), "must be a text"),
        ({"program": "train.py", "env": {"MY_TOKEN": "x"}}, zipped(), "looks like a secret"),
        ({"program": "train.py"}, zipped({"train.py": "def"}), "train.py"),
        ('{"worker": NaN}', zipped(), "not a JSON object"),
        ('{"name": "\\ud800"}', zipped(), "not a JSON object"),
        ("[1]", zipped(), "not a JSON object"),
        ("[" * 50000, zipped(), "not a JSON object"),
    ],
)
def test_a_wrong_request_is_refused_in_one_sentence(
    server: Server, options: Any, bundle: bytes | None, error: str
) -> None:
    before = total(server)
    answer = post(server, options, bundle, "wrong")
    assert answer.status == 400, answer.data
    assert error in answer.json["error"] + answer.json["fix"], answer.json
    assert total(server) == before


def test_the_form_of_a_request_is_checked(server: Server) -> None:
    before = total(server)
    for content, kind in (
        (b"{}", "application/json"),
        (b"", "multipart/form-data; boundary=b1"),
        (b"junk", "multipart/form-data; boundary=b1"),
        (b"junk", "multipart/form-data"),
        (body({}, zipped()).replace(b'"options"', b'"bundle"'), "multipart/form-data; boundary=b1"),
        (body({}, zipped()).replace(b'"options"', b'"other"'), "multipart/form-data; boundary=b1"),
    ):
        answer = server.call("POST", "jobs", content, Content_Type=kind)
        assert (answer.status, answer.json["code"]) == (400, "usage"), content[:80]
    answer = post(server, {"program": "train.py"}, request_id="with space")
    assert answer.status == 400
    assert total(server) == before


def test_sizes_are_limited(server: Server) -> None:
    large = post(server, {"name": "x" * 70000})
    assert (large.status, large.json["code"]) == (413, "too_large")
    bomb = zipped({"main.py": "", "zeros.txt": "\0" * (70 << 20)})
    assert len(bomb) < 200_000
    answer = post(server, {}, bomb)
    assert answer.status == 400
    assert "larger than 64 MiB" in answer.json["error"]
    many = post(server, {}, zipped({f"m{number}.py": "" for number in range(2001)}))
    assert "more than 2000 files" in many.json["error"]
    announced = server.call("POST", "jobs", b"", Content_Length=str(80 << 20))
    assert announced.status == 413


def test_few_large_bodies_are_received_at_once_and_none_without_a_login(server: Server) -> None:
    head = (
        f"POST {API}jobs HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        f"Authorization: token {TOKEN}\r\nContent-Length: {8 << 20}\r\n\r\nx"
    )
    connections = []
    for _ in range(4):
        made = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        made.sendall(head.encode())
        connections.append(made)
    stranger = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    stranger.sendall(head.replace(TOKEN, "wrong").encode())
    assert b" 403 " in stranger.recv(100)
    stranger.close()
    large = body({}, b"\0" * (2 << 20))

    def status() -> int:
        kind = "multipart/form-data; boundary=b1"
        try:
            return server.call("POST", "jobs", large, Content_Type=kind).status
        except (BrokenPipeError, ConnectionResetError):
            return 0  # Refused while the body was being sent.

    deadline = time.monotonic() + 20
    while status() != 503:
        assert time.monotonic() < deadline
    for made in connections:
        made.close()
    while (found := status()) in (0, 503):
        assert time.monotonic() < deadline
    assert found == 400


def test_a_submission_needs_a_login_and_the_token_against_forgery(server: Server) -> None:
    before = total(server)
    content = body({"program": "train.py"}, zipped())
    kind = "multipart/form-data; boundary=b1"
    refused = server.call("POST", "jobs", content, token=None, Content_Type=kind)
    assert refused.status == 403
    cookie, xsrf = server.log_in()
    forged = server.call("POST", "jobs", content, token=None, Content_Type=kind, Cookie=cookie)
    assert forged.status == 403
    foreign = server.call("POST", "jobs", content, Content_Type=kind, Origin="https://evil.example")
    assert foreign.status == 403
    assert total(server) == before
    answer = server.call(
        "POST", "jobs", content, token=None, Content_Type=kind, Cookie=cookie, X_XSRFToken=xsrf
    )
    assert answer.status == 201, answer.data


def test_the_example_in_java_submits_once(server: Server, tmp_path: Path) -> None:
    javac, java = shutil.which("javac"), shutil.which("java")
    if javac is None or java is None:
        pytest.skip("no JDK on this machine")
    source = EXAMPLES / "SubmitJob.java"
    compiled = subprocess.run(
        [javac, "--release", "11", "-Xlint:all", "-Werror", "-d", str(tmp_path), str(source)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert compiled.returncode == 0, compiled.stderr
    (tmp_path / "train.zip").write_bytes(zipped())
    options = {"program": "train.py", "name": "from-java"}
    lines = []
    for _ in range(2):
        ran = subprocess.run(
            [java, "-Xmx64m", "-cp", str(tmp_path), "SubmitJob", f"{server.origin}{BASE}",
             str(tmp_path / "train.zip"), json.dumps(options), "java-1"],
            capture_output=True, text=True, timeout=120, env={"SUBMARINE_TOKEN": TOKEN},
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        lines.append(ran.stdout.splitlines())
    assert [line[1] for line in lines] == ["SUCCEEDED", "SUCCEEDED"]
    answers = [json.loads(line[0]) for line in lines]
    assert [answer["repeated"] for answer in answers] == [False, True]
    assert answers[0]["job_id"] == answers[1]["job_id"]


@pytest.mark.full
def test_the_example_in_scala_submits_once(server: Server, tmp_path: Path) -> None:
    """Compiled with the Scala compiler among the jars of Spark."""
    java, jars = shutil.which("java"), spark_home() / "jars"
    if java is None or not list(jars.glob("scala-compiler-*.jar")):
        pytest.skip("no Java, or no Scala compiler in the jars of Spark")
    scala = ":".join(map(str, sorted(jars.glob("scala-*.jar"))))
    compiled = subprocess.run(
        [java, "-cp", scala, "scala.tools.nsc.Main", "-usejavacp", "-release", "11", "-Xlint",
         "-Werror", "-d", str(tmp_path), str(EXAMPLES / "SubmitJob.scala")],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert compiled.returncode == 0, compiled.stdout + compiled.stderr
    (tmp_path / "train.zip").write_bytes(zipped())
    options = {"program": "train.py", "name": "from-scala"}
    answers = []
    for _ in range(2):
        ran = subprocess.run(
            [java, "-Xmx64m", "-cp", f"{tmp_path}:{scala}", "SubmitJob", f"{server.origin}{BASE}",
             str(tmp_path / "train.zip"), json.dumps(options), "scala-1"],
            capture_output=True, text=True, timeout=120, env={"SUBMARINE_TOKEN": TOKEN},
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
        answers.append(json.loads(ran.stdout))
    assert [answer["repeated"] for answer in answers] == [False, True]
    assert answers[0]["job_id"] == answers[1]["job_id"]
    assert state(server, answers[0]["job_id"]) == "SUCCEEDED"
