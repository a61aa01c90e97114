"""Whole jobs on the local backend with each mode of ``--input``, patterns, manifests and stores."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.commands.grammar import execute
from submarine_jobs.errors import ClusterError, UsageError
from submarine_jobs.model import Profile
from submarine_jobs.options import parse_input
from submarine_runtime.protocol import EndReason
from tests.frontends import RecordingFrontend
from tests.local.data.data_files import write
from tests.submission import Submit, submitting
from tests.waiting import until

#: Prints what the program finds in the variable of its input, one JSON object for each task.
SHOW = """
import json, os
value = os.environ["SUBMARINE_INPUT_T"]
found = {"value": value, "task": os.environ["SUBMARINE_INDEX"]}
if os.path.isdir(value):
    found["files"] = sorted(
        os.path.relpath(os.path.join(folder, name), value)
        for folder, _, names in os.walk(value) for name in names
    )
elif os.path.isfile(value):
    found["lines"] = open(value, encoding="utf-8").read().split("\\n")
found["variables"] = {
    name: text for name, text in os.environ.items() if name in ("HF_HOME", "HF_HUB_OFFLINE")
}
print(json.dumps(found), flush=True)
"""
ODD = {f"set é/part {n} %2B+{n}.csv": b"x" * (n + 1) for n in range(7)}


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Profile(backend="local", state_dir=tmp_path / "state"))


@pytest.fixture
def submit(session: Session) -> Iterator[Submit]:
    with submitting(session) as made:
        yield made


def shown(job: Job, epoch: int = 1) -> list[dict[str, Any]]:
    """What each task of a job printed first in an epoch."""
    logs = Path(job.directory.path, "logs").glob(f"*/e{epoch}-a1/stdout.0*")
    return [json.loads(path.read_text().splitlines()[0]) for path in sorted(logs)]


def run(submit: Submit, text: str, **fields: Any) -> list[dict[str, Any]]:
    job = submit(SHOW, inputs=(parse_input(f"T={text}"),), **fields)
    job.wait_success(90)
    return shown(job)


def listed(tasks: list[dict[str, Any]]) -> list[str]:
    """The lines of the lists of all tasks; each list ends with a line break."""
    assert all(task["lines"][-1] == "" for task in tasks)
    return [line for task in tasks for line in task["lines"][:-1]]


@pytest.mark.full
def test_each_mode_for_one_task_and_a_gang(submit: Submit, tmp_path: Path) -> None:
    write(tmp_path, {**ODD, "set é/_SUCCESS": b"", "set é/sub/deep.csv": b"deep"})
    every = [*ODD, "set é/sub/deep.csv"]
    root = tmp_path / "set é"
    uris = sorted(f"file://{tmp_path}/{name}" for name in every)
    names = sorted(name.removeprefix("set é/") for name in every)
    (one,) = run(submit, f"{root}")
    assert one["files"] == sorted([*names, "_SUCCESS"])
    (one,) = run(submit, f"{root}:list")
    assert sorted(listed([one])) == uris
    (one,) = run(submit, f"{root}:mount")
    assert one["value"] == f"file://{root}"

    gang = run(submit, f"{root}:list", instances=3)
    assert len(gang) == 3
    assert Counter(listed(gang)) == Counter(uris)
    gang = run(submit, f"{root}:shard", instances=2)
    assert sorted(name for task in gang for name in task["files"] if name != "_SUCCESS") == names
    gang = run(submit, f"{root}:mount", instances=2)
    assert [task["value"] for task in gang] == [f"file://{root}"] * 2


@pytest.mark.full
def test_patterns_and_manifests(submit: Submit, tmp_path: Path) -> None:
    write(
        tmp_path / "d",
        {
            "2026-01/a.csv": b"1",
            "2026-01/b.txt": b"2",
            "2026-02/deep/c.csv": b"3",
            "x[1].csv": b"4",
        },
    )
    for pattern, names in (
        ("*/*.csv", ["2026-01/a.csv"]),
        ("**/*.csv", ["2026-01/a.csv", "2026-02/deep/c.csv", "x[1].csv"]),
        ("2026-0[2-9]", ["2026-02/deep/c.csv"]),
        ("2026-0[^2]/?.*", ["2026-01/a.csv", "2026-01/b.txt"]),
    ):
        (one,) = run(submit, f"{tmp_path}/d/{pattern}")
        assert one["files"] == names
    # A name that exists is no pattern.
    (one,) = run(submit, f"{tmp_path}/d/x[1].csv:list")
    assert listed([one]) == [f"file://{tmp_path}/d/x[1].csv"]

    lines = [
        "\ufeff# a comment",
        f"file://{tmp_path}/d/2026-01/a.csv",
        "",
        f"{tmp_path}/d/2026-0[2-9]/**",
        f"{tmp_path}/d/x[1].csv",
    ]
    (tmp_path / "files.txt").write_text("\r\n".join(lines))
    gang = run(submit, f"@{tmp_path}/files.txt:list", instances=2)
    assert sorted(listed(gang)) == [
        f"file://{tmp_path}/d/{name}"
        for name in ("2026-01/a.csv", "2026-02/deep/c.csv", "x[1].csv")
    ]
    (one,) = run(submit, f"@{tmp_path}/files.txt")
    assert one["files"] == ["2026-01/a.csv", "2026-02/deep/c.csv", "x[1].csv"]
    with open(tmp_path / "files.txt", "a") as file:
        file.write(f"\n{tmp_path}/d/x[1].csv")
    with pytest.raises(UsageError, match=r"line 6 of .*again, as line 5 does"):
        run(submit, f"@{tmp_path}/files.txt")


def test_lines_of_a_manifest_that_name_no_file_are_refused(submit: Submit, tmp_path: Path) -> None:
    write(tmp_path, {"d/größe 1.csv": b"1", "secret": b"2"})
    for line, problem in {
        "ROOT/d/../secret": "contains .., which leads out of a directory",
        "file://ROOT/d/%2e%2e/secret": "contains .., which leads out of a directory",
        "d/a.csv": "is neither a URI nor an absolute path",
        "ROOT/d/a\tb": "contains a control character",
        "@ROOT/d/other.txt": "is not a file",
    }.items():
        uri = line.replace("ROOT", str(tmp_path))
        (tmp_path / "d/files.txt").write_text(f"{tmp_path}/d/größe 1.csv\n{uri}\n")
        with pytest.raises(UsageError) as caught:
            run(submit, f"@{tmp_path}/d/files.txt:list")
        place = f"line 2 of file://{tmp_path}/d/files.txt"
        assert str(caught.value).startswith(f"--input T: {place}: {uri!r} {problem}.")


@pytest.mark.full
def test_a_restarted_worker_has_the_same_list_though_a_file_was_added(
    submit: Submit, tmp_path: Path
) -> None:
    write(tmp_path / "set", {f"p{number}": b"x" * (number + 1) for number in range(5)})
    flag = tmp_path / "flag"
    source = (
        SHOW
        + f"""
import time
while not os.path.exists({str(flag)!r}):
    time.sleep(0.1)
"""
    )
    inputs = (parse_input(f"T={tmp_path}/set:list"),)
    job = submit(source, instances=2, inputs=inputs, max_restarts=2)
    until(lambda: len(shown(job)) == 2, seconds=90)
    write(tmp_path / "set", {"p9": b"x" * 100})
    before = shown(job)
    pid = next(task.pid for task in job.record().tasks if task.task == "worker:1")
    assert pid
    os.kill(pid, signal.SIGKILL)
    until(lambda: len(shown(job, 2)) == 2, seconds=90)
    flag.touch()
    job.wait_success(60)
    assert [task["lines"] for task in shown(job, 2)] == [task["lines"] for task in before]
    assert sorted(listed(before)) == [f"file://{tmp_path}/set/p{n}" for n in range(5)]
    # A rerun lists again.
    again = job.rerun()
    again.wait_success(90)
    assert sorted(listed(shown(again)))[-1] == f"file://{tmp_path}/set/p9"
    assert any("5 files (15 B) at the submission" in note for note in job.record().notes)


@pytest.mark.full
def test_10000_small_files_start_quickly(submit: Submit, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(10_000):
        (folder / f"f{number:05}").write_bytes(b"x")
    source = """
import json, os
value = os.environ["SUBMARINE_INPUT_T"]
print(json.dumps(sum(1 for _ in open(value)) if os.path.isfile(value) else value), flush=True)
"""
    # The first job also builds the runtime's archive.
    submit("print(1)").wait_success(90)
    times = {}
    for mode, expected in (("list", 10_000), ("mount", f"file://{folder}")):
        began = time.monotonic()
        job = submit(source, inputs=(parse_input(f"T={folder}:{mode}"),))
        until(partial(shown, job), seconds=60)
        times[mode] = time.monotonic() - began
        assert list[object](shown(job)) == [expected]
        job.wait_success(60)
    print("seconds to the first line:", times)
    assert max(times.values()) < 10


# http


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def serving(handler: Any) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    write(tmp_path / "web", {"a b.bin": b"a" * 300_000, "c é.bin": b"c" * 10})
    server = serving(partial(Quiet, directory=str(tmp_path / "web")))
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.full
def test_http_by_the_fsspec_of_the_job(
    submit: Submit, session: Session, web: str, tmp_path: Path
) -> None:
    first, second = f"{web}/a%20b.bin", f"{web}/{quote('c é.bin')}"
    source = SHOW + "print(os.path.getsize(value) if os.path.isfile(value) else '-')"
    job = submit(source, inputs=(parse_input(f"T={first}"),))
    job.wait_success(90)
    (one,) = [json.loads(Path(path).read_text().splitlines()[0]) for path in
              Path(job.directory.path, "logs").glob("*/e1-a1/stdout.0*")]  # fmt: skip
    assert one["value"].endswith("/inputs/T/a b.bin")
    assert b"300000" in b"".join(chunk.data for chunk in job.read_log())
    (tmp_path / "files.txt").write_text(f"{first}\n{second}\n")
    gang = run(submit, f"@{tmp_path}/files.txt:shard", instances=2)
    assert sorted(name for task in gang for name in task["files"]) == ["a b.bin", "c é.bin"]
    gang = run(submit, f"@{tmp_path}/files.txt:list", instances=2)
    assert sorted(listed(gang)) == sorted([first, second])
    (one,) = run(submit, f"{first}:mount")
    assert one["value"] == first
    job = submit(SHOW, inputs=(parse_input(f"T={web}/nothing"),))
    record = job.wait(90)
    assert record.reason is EndReason.INPUT_MISSING
    assert record.detail.startswith(f"--input T: there is nothing at {web}/nothing")
    with pytest.raises(UsageError, match="is one file, and :shard divides"):
        submit(SHOW, instances=2, inputs=(parse_input(f"T={first}:shard"),))
    # The dry run cannot know the size, and a Python without fsspec is refused.
    (tmp_path / "train.py").write_text("print(1)")
    words = ["run", str(tmp_path / "train.py"), "--backend=local", "--dry-run"]
    dry = execute([*words, f"--input=T={first}"], RecordingFrontend(session=session))
    assert [tuple(item.values()) for item in dry.value["inputs"]] == [
        ("worker:0", "T", None, None, "download")
    ]
    assert "its size is not known before the job lists it" in dry.text
    s3 = execute([*words, "--input=T=s3://bucket/data"], RecordingFrontend(session=session))
    assert s3.exit_code == 2
    assert "does not have s3fs to read s3://bucket/data" in s3.text


# Another file system: WebHDFS at the address in the URI


class WebHdfs(BaseHTTPRequestHandler):
    """The reading operations of WebHDFS on a directory, as documented by Hadoop."""

    root = ""
    calls: Counter[str]

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {key: value[0] for key, value in parse_qs(parts.query).items()}
        place = Path(self.root + unquote(parts.path).removeprefix("/webhdfs/v1"))
        operation = query["op"]
        self.calls[operation] += 1
        if not place.exists():
            text = {
                "exception": "FileNotFoundException",
                "message": f"File does not exist: {place}",
            }
            self.answer(404, json.dumps({"RemoteException": text}).encode())
        elif operation == "OPEN" and "data" not in query:
            self.send_response(307)
            self.send_header("Location", f"http://{self.headers['Host']}{self.path}&data=1")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif operation == "OPEN":
            start = int(query.get("offset", 0))
            data = place.read_bytes()[start:]
            self.answer(200, data[: int(query.get("length", len(data)))])
        elif operation == "GETFILESTATUS":
            self.answer(200, json.dumps({"FileStatus": self.status(place, "")}).encode())
        else:
            rows = [self.status(entry, entry.name) for entry in sorted(place.iterdir())]
            self.answer(200, json.dumps({"FileStatuses": {"FileStatus": rows}}).encode())

    def status(self, place: Path, name: str) -> dict[str, object]:
        kind = "DIRECTORY" if place.is_dir() else "FILE"
        size = 0 if place.is_dir() else place.stat().st_size
        return {"pathSuffix": name, "length": size, "type": kind, "permission": "644"}

    def answer(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.full
def test_another_file_system_with_few_requests_of_the_namenode(
    submit: Submit, tmp_path: Path
) -> None:
    write(tmp_path / "hdfs/data", {f"part é {n}.csv": b"x" * (n + 1) for n in range(60)})
    calls: Counter[str] = Counter()
    handler = type("Handler", (WebHdfs,), {"root": str(tmp_path / "hdfs"), "calls": calls})
    server = serving(handler)
    place = f"webhdfs://127.0.0.1:{server.server_port}"
    try:
        gang = run(submit, f"{place}/data:list", instances=3)
        assert sorted(listed(gang)) == sorted(f"{place}/data/part é {n}.csv" for n in range(60))
        # One directory is listed once, by the submission; the tasks do not ask this NameNode.
        assert calls == {"GETFILESTATUS": 3, "LISTSTATUS": 1}
        gang = run(submit, f"{place}/data/part*1.csv:shard", instances=2)
        assert len([name for task in gang for name in task["files"]]) == 6
        (one,) = run(submit, f"{place}/data/part é 7.csv")
        assert one["value"].endswith("/inputs/T/part é 7.csv")
        (tmp_path / "files.txt").write_text(
            "".join(f"{place}/data/part é {n}.csv\n" for n in range(40))
        )
        calls.clear()
        gang = run(submit, f"@{tmp_path}/files.txt:list", instances=2)
        assert len(listed(gang)) == 40
        assert calls == {"LISTSTATUS": 1}
        (one,) = run(submit, f"{place}/data:mount")
        assert one["value"] == f"{place}/data"
    finally:
        server.shutdown()
        server.server_close()


# The Hugging Face hub


class Hub(BaseHTTPRequestHandler):
    """The hub's server for one model; it can break off a transfer, and counts the requests."""

    files: dict[str, bytes]
    commit = hashlib.sha1(b"commit", usedforsecurity=False).hexdigest()
    calls: list[tuple[str, str, str]]
    breaks: list[str]
    damaged: list[str]
    token = "secret-of-the-user"

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.calls.append(
            (path, self.headers.get("Range", ""), self.headers.get("Authorization", ""))
        )
        if self.headers.get("Authorization") != f"Bearer {self.token}":
            self.answer(401, b"")
        elif path == "/api/models/org/tiny/revision/main":
            self.answer(200, json.dumps({"sha": self.commit}).encode())
        elif path == f"/api/models/org/tiny/tree/{self.commit}":
            self.tree()
        elif path.startswith(f"/org/tiny/resolve/{self.commit}/"):
            self.send_file(path.removeprefix(f"/org/tiny/resolve/{self.commit}/"))
        else:
            self.answer(404, b"", {"X-Error-Code": "RevisionNotFound"})

    def tree(self) -> None:
        rows: list[dict[str, object]] = [{"type": "directory", "path": "sub", "oid": "0" * 40}]
        for name, data in self.files.items():
            blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
            row: dict[str, object] = {"type": "file", "path": name, "size": len(data), "oid": blob}
            if name.endswith(".bin"):
                row["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data)}
            rows.append(row)
        # Two pages.
        if "cursor" in self.path:
            self.answer(200, json.dumps(rows[2:]).encode())
        else:
            link = f'<http://{self.headers["Host"]}{self.path}&cursor=2>; rel="next"'
            self.answer(200, json.dumps(rows[:2]).encode(), {"Link": link})

    def send_file(self, name: str) -> None:
        data = self.files[name]
        if name in self.damaged:
            data = b"?" * len(data)
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        if name in self.breaks:
            self.breaks.remove(name)
            self.wfile.write(data[start : start + 1000])
            self.close_connection = True
            return
        self.wfile.write(data[start:])

    def answer(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    files = {"config.json": b'{"a": 1}', "model.bin": os.urandom(200_000), "sub/ä b.txt": b"text"}
    made: type[Hub] = type(
        "Made", (Hub,), {"files": files, "calls": [], "breaks": [], "damaged": []}
    )
    server = serving(made)
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("HF_TOKEN", Hub.token)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    yield made
    server.shutdown()
    server.server_close()


@pytest.mark.full
def test_a_model_of_the_hub_is_fetched_once_and_is_offline_in_the_job(
    submit: Submit, session: Session, hub: type[Hub], tmp_path: Path
) -> None:
    hub.breaks.append("model.bin")
    jobs: list[Job] = []
    threads = [
        threading.Thread(
            target=lambda: jobs.append(submit(SHOW, inputs=(parse_input("T=hf://org/tiny"),)))
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(jobs) == 2
    fetched = [
        (path.rpartition("/")[2], area) for path, area, _ in hub.calls if "/resolve/" in path
    ]
    # Each file once for both jobs; the broken transfer goes on at its last byte.
    assert sorted(fetched) == [
        ("config.json", ""), ("model.bin", ""), ("model.bin", "bytes=1000-"), ("ä b.txt", "")
    ]  # fmt: skip
    for job in jobs:
        job.wait_success(90)
        (one,) = shown(job)
        assert one["files"] == sorted(hub.files)
        home = one["variables"]["HF_HOME"]
        assert one["variables"]["HF_HUB_OFFLINE"] == "1"
        assert one["value"] == f"{home}/hub/models--org--tiny/snapshots/{hub.commit}"
        assert any(f"at the commit {hub.commit} (main)" in note for note in job.record().notes)
    # What the user's own token opened is no part of the job.
    for path in session.profile.state_dir.rglob("*"):
        if path.is_file():
            assert hub.token.encode() not in path.read_bytes(), path
    # Like huggingface_hub's cache: the name of the branch is a file with the commit.
    cache = session.profile.state_dir / "jobs/cache/hf/hub/models--org--tiny"
    assert (cache / "refs/main").read_text() == hub.commit
    assert (cache / f"snapshots/{hub.commit}/model.bin").read_bytes() == hub.files["model.bin"]
    # A rerun has the same commit, and needs no server.
    hub.calls.clear()
    again = jobs[0].rerun()
    again.wait_success(90)
    assert shown(again)[0]["files"] == sorted(hub.files)
    assert hub.calls == []
    gang = run(submit, f"hf://org/tiny@{hub.commit}:shard", instances=2)
    assert sorted(name for task in gang for name in task["files"]) == sorted(hub.files)
    (one,) = run(submit, f"hf://org/tiny@{hub.commit}:mount")
    assert one["value"] == f"file://{cache}/snapshots/{hub.commit}"


@pytest.mark.full
def test_what_the_hub_refuses_or_damages(
    submit: Submit, hub: type[Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(uri: str) -> None:
        submit("print(1)", inputs=(parse_input(f"T={uri}"),))

    with pytest.raises(UsageError, match=r"the hub has no hf://org/tiny@v9\. Check name"):
        start("hf://org/tiny@v9")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UsageError, match=r"is not in the cache .*Unset HF_HUB_OFFLINE"):
        start("hf://org/tiny")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    hub.damaged.append("model.bin")
    with pytest.raises(UsageError, match=r"the content of model.bin is not that of the commit"):
        start("hf://org/tiny")
    monkeypatch.setenv("HF_TOKEN", "")
    with pytest.raises(UsageError, match=r"refuses hf://org/tiny \(status 401\).*HF_TOKEN"):
        start("hf://org/tiny")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ClusterError, match=r"http://127.0.0.1:9 cannot be read"):
        start("hf://org/tiny")


@pytest.mark.full
def test_the_dry_run_shows_the_files_of_each_task_and_recommends_a_mode(
    session: Session, tmp_path: Path
) -> None:
    write(tmp_path, {"set/a": b"x" * 30, "set/b": b"x" * 10, "set/c": b"x" * 20, "train.py": b"1"})
    os.truncate(tmp_path / "set/a", 1 << 43)
    words = ["run", str(tmp_path / "train.py"), "--backend=local", "--dry-run", "--worker=2"]
    words += [f"--input={n}={tmp_path}/set{mode}" for n, mode in
              (("D", ""), ("S", ":shard"), ("L", ":list"), ("M", ":mount"))]  # fmt: skip
    dry = execute(words, RecordingFrontend(session=session))
    rows = {(i["name"], i["task"]): (i["mode"], i["files"], i["size"]) for i in dry.value["inputs"]}
    whole = (1 << 43) + 30
    assert rows == {
        ("D", "worker:0"): ("download", 3, whole),
        ("D", "worker:1"): ("download", 3, whole),
        ("S", "worker:0"): ("shard", 1, 1 << 43),
        ("S", "worker:1"): ("shard", 2, 30),
        ("L", "worker:0"): ("list", 1, 1 << 43),
        ("L", "worker:1"): ("list", 2, 30),
        ("M", "worker:0"): ("mount", 3, whole),
        ("M", "worker:1"): ("mount", 3, whole),
    }
    assert dry.value["advice"] == [line for line in dry.text.splitlines() if " fetches " in line]
    assert dry.value["advice"][0].startswith("D: a task fetches 17.6 TB of inputs and ")
    assert dry.value["advice"][0].endswith("use :list or :mount, which need no disk.")
    assert len(dry.value["advice"]) == 2
