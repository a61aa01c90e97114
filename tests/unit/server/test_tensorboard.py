"""TensorBoard's parts: what passes the proxy, scratch, what a job's files may do, the verb."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from submarine_jobs.commands.grammar import execute
from submarine_jobs.commands.tensorboard import MIME_TYPE
from submarine_jobs.config import back_links, server_url
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend
from submarine_jobs.storage import LocalStorage
from submarine_jobs.tensorboards import Process, Scratch, remove_stale
from submarine_jobs.tensorboards.instance import files_of
from submarine_runtime.record import TensorBoardClients
from submarine_runtime.tensorboards import DiskQuota, DiskQuotaError
from submarine_server.base import ApiError
from submarine_server.tensorboard import proxy_headers as headers
from submarine_server.tensorboard.handler import job_ids

ONE, TWO = "digits-20261120-7f3a", "other-20261121-00ff"


def test_a_set_of_jobs_is_one_whatever_its_order() -> None:
    assert job_ids(f"{TWO},{ONE}") == job_ids(f"{ONE},{TWO},{ONE}") == (ONE, TWO)


@pytest.mark.parametrize("text", ["", ",", "..", f"{ONE},..", f"{ONE}\n", f"{ONE} ", "a/b", "%00"])
def test_what_is_no_job_id_is_not_found(text: str) -> None:
    with pytest.raises(ApiError) as error:
        job_ids(text)
    assert error.value.status_code == 404


def test_there_is_an_end_to_comparing() -> None:
    with pytest.raises(ApiError, match="400"):
        job_ids(",".join(f"j{n}-20261120-7f3a" for n in range(21)))


def test_only_named_headers_go_to_the_backend() -> None:
    sent = {
        "Cookie": "c",
        "Authorization": "token t",
        "X-XSRFToken": "x",
        "Referer": "http://here/?token=t",
        "X-Forwarded-Email": "e",
        "Origin": "http://here",
        "Accept": "*/*",
        "Content-Type": "a/b",
        "X-TensorBoard-Feature-Flags": "{}",
        "Accept-Encoding": "br, gzip",
    }
    assert headers.backend_headers(sent, plain=False) == {
        "Accept": "*/*",
        "Content-Type": "a/b",
        "X-TensorBoard-Feature-Flags": "{}",
        "Accept-Encoding": "gzip",
    }
    assert headers.backend_headers(sent, plain=True)["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    ("query", "clean"),
    [
        ("token=t", ""),
        ("a=1&Token=t&b=", "a=1&b="),
        ("%74oken=t&run=a%2Fb", "run=a%2Fb"),
        ("run=a;token=t", "run=a%3Btoken%3Dt"),
        ("code=1&state=2&_xsrf=3", ""),
    ],
)
def test_no_login_is_left_in_a_query(query: str, clean: str) -> None:
    assert headers.clean_query(query) == clean


def test_a_path_stays_a_path() -> None:
    assert headers.backend_path("/a?token=1#b c") == "/a%3Ftoken=1%23b%20c"
    assert headers.backend_path("//evil.example/x") == "/evil.example/x"


def test_policies_of_what_comes_back() -> None:
    own = "default-src 'self';frame-ancestors *;script-src 'self'"
    page = headers.browser_headers(
        [("Content-Type", "text/html; charset=utf-8"), ("Content-Security-Policy", own)]
    )
    policy = page["Content-Security-Policy"]
    assert "frame-ancestors *" not in policy
    assert "script-src 'self'" in policy
    assert policy.count("frame-ancestors 'self'") == 1
    bare = headers.browser_headers([("Content-Type", "text/html")])
    assert "default-src 'self'" in bare["Content-Security-Policy"]
    image = headers.browser_headers([("content-type", "image/svg+xml"), ("Set-Cookie", "a=b")])
    assert image["Content-Security-Policy"].startswith("sandbox")
    assert "Set-Cookie" not in image


def test_notices_are_text() -> None:
    page = headers.page_body(b"<html><body class='x'>url(/font-roboto/a)", ["<script>1</script>"])
    assert b"<script>" not in page
    assert b"&lt;script&gt;" in page
    assert page.endswith(b"url(font-roboto/a)")
    assert headers.page_body(b"<body>", []) == b"<body>"


def test_scratch_of_the_living_stays_and_of_the_dead_goes(tmp_path: Path) -> None:
    parent = tmp_path / "boards"
    program = (
        "import sys, os, pathlib\n"
        "from submarine_jobs.tensorboards.scratch import Scratch\n"
        "made = Scratch(pathlib.Path(sys.argv[1]))\n"
        "(made.path / 'file').touch()\n"
        "print(made.path, flush=True)\n"
        "sys.stdin.read()\n"
        "os._exit(1)\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdin is not None
    assert other.stdout is not None
    theirs = Path(other.stdout.readline().strip())
    remove_stale(parent)
    ours = Scratch(parent)
    assert theirs.is_dir()
    assert ours.path.stat().st_mode & 0o777 == 0o700
    other.kill()
    other.communicate()
    remove_stale(parent)
    assert not theirs.exists()
    assert ours.path.is_dir()
    ours.remove()
    assert not ours.path.exists()


def job_at(directory: Path, chief: str = "worker:0") -> Any:
    storage = LocalStorage()
    held = SimpleNamespace(storage=storage, path=str(directory))
    return SimpleNamespace(id=ONE, name="digits", chief=chief, directory=held)


def piece(job: Path, task: str, path: str, offset: int, data: bytes) -> None:
    place = job / "growing" / task / "e1-a1" / path
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{offset:012d}").write_bytes(data)


def files_below(folder: Path) -> dict[str, bytes]:
    found = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_runs_have_the_same_names_while_a_job_runs_and_after(tmp_path: Path) -> None:
    job, runs = tmp_path / "job", tmp_path / "runs"
    runs.mkdir()
    event = "train/events.out.tfevents.1"
    piece(job, "worker-0", event, 0, b"abc")
    piece(job, "worker-1", event, 0, b"xyz")
    files = files_of(job_at(job), runs, DiskQuota(str(runs), 1000))
    files.update()
    grown = {f"{ONE}/{event}": b"abc", f"{ONE}/worker-1/{event}": b"xyz"}
    assert files_below(runs) == grown
    piece(job, "worker-0", event, 3, b"def")
    files.update()
    assert files_below(runs)[f"{ONE}/{event}"] == b"abcdef"
    complete_while_it_runs = files.complete
    assert complete_while_it_runs is False

    (job / "tensorboard/train").mkdir(parents=True)
    (job / "tensorboard" / event).write_bytes(b"abcdefghi")
    (job / "tasks/worker-1/tensorboard/train").mkdir(parents=True)
    (job / "tasks/worker-1/tensorboard" / event).write_bytes(b"xyz!")
    (job / "record.json").write_text("{}")
    files.update()
    assert files.complete
    whole = {f"{ONE}/{event}": b"abcdefghi", f"{ONE}/worker-1/{event}": b"xyz!"}
    assert files_below(runs) == whole
    assert files.update() == 0


def test_the_size_is_limited(tmp_path: Path) -> None:
    job, runs = tmp_path / "job", tmp_path / "runs"
    runs.mkdir()
    piece(job, "worker-0", "events.out.tfevents.1", 0, b"x" * 900)
    piece(job, "worker-0", "events.out.tfevents.2", 0, b"x" * 900)
    files = files_of(job_at(job), runs, DiskQuota(str(runs), 1000))
    with pytest.raises(DiskQuotaError, match="MiB of TensorBoard files"):
        files.update()
    assert sum(map(len, files_below(runs).values())) == 900


def test_names_that_lead_elsewhere_are_left(tmp_path: Path) -> None:
    job, runs = tmp_path / "job", tmp_path / "runs"
    runs.mkdir()
    piece(job, "worker-0", "deep/events.out.tfevents.1", 0, b"a")
    os.rename(job / "growing/worker-0/e1-a1/deep", job / "growing/worker-0/e1-a1/.tmp-x")
    files_of(job_at(job), runs, DiskQuota(str(runs), 1000)).update()
    assert all(Path(runs, name).resolve().is_relative_to(runs) for name in files_below(runs))


def test_a_socket_has_a_short_name_wherever_the_state_directory_is(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    process = Process(deep, deep / "log", deep)
    assert process.socket is not None
    assert len(process.socket) < 100
    assert Path(process.socket).parent.stat().st_mode & 0o777 == 0o700
    process.remove()
    assert not Path(process.socket).parent.exists()


def test_a_view_lasts_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("submarine_runtime.record.status.time.monotonic", lambda: now[0])
    woken: list[int] = []
    clients = TensorBoardClients()
    clients.wake = lambda: woken.append(1)
    present = [clients.present]
    clients.request()
    now[0] += 59
    clients.request()
    present.append(clients.present)
    now[0] += 61
    present.append(clients.present)
    assert present == [False, True, False]
    assert woken == [1]


def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **facts: str) -> dict[str, str]:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "jpserver-4711.json").write_text(json.dumps(facts))
    return {"JPY_PARENT_PID": "4711"}


def test_the_server_of_a_kernel_is_known_where_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"url": "http://here:8888/user/ada/?token=t", "token": "t", "root_dir": str(tmp_path)}
    environ = written(tmp_path, monkeypatch, **facts)
    assert server_url(environ) == "http://here:8888/user/ada/"
    assert back_links(environ) == {"JupyterLab": "http://here:8888/user/ada/lab"}
    notebook = {**environ, "JPY_SESSION_NAME": str(tmp_path / "a b" / "c?.ipynb")}
    assert back_links(notebook) == {
        "Notebook": "http://here:8888/user/ada/lab/tree/a%20b/c%3F.ipynb"
    }
    outside = {**environ, "JPY_SESSION_NAME": str(tmp_path.parent / "c.ipynb")}
    assert back_links(outside) == {"JupyterLab": "http://here:8888/user/ada/lab"}
    public = {**environ, "JUPYTERHUB_PUBLIC_URL": "https://hub.example/user/ada/"}
    assert server_url(public) == "https://hub.example/user/ada/"


@pytest.mark.parametrize("url", ["", "javascript:alert(1)", "http://a@b/", "http://[", "ftp://x/"])
def test_what_is_no_address_is_none(url: str) -> None:
    assert server_url({"SUBMARINE_JUPYTER_URL": url}) is None
    assert back_links({"JPY_PARENT_PID": "../../etc"}) == {}


class Notebook(Frontend):
    kind = "notebook"

    def session(self, config: object) -> Any:
        own = SimpleNamespace(store=SimpleNamespace(owner=lambda job_id: None))
        return SimpleNamespace(
            job=lambda text: SimpleNamespace(id=f"{text}-20261120-7f3a", session=own)
        )


def test_in_a_notebook_the_verb_gives_ids_and_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBMARINE_JUPYTER_URL", "https://hub.example/user/ada/")
    outcome = execute(["tensorboard", "a", "b", "a"], Notebook())
    ids = ["a-20261120-7f3a", "b-20261120-7f3a"]
    assert outcome.mime == {MIME_TYPE: {"version": 1, "jobs": ids}}
    url = f"https://hub.example/user/ada/submarine/tensorboard/{','.join(ids)}/"
    assert outcome.value == {
        "job_ids": ids,
        "path": f"submarine/tensorboard/{','.join(ids)}/",
        "url": url,
    }
    assert url in outcome.text
    assert "submarine tensorboard a-20261120-7f3a b-20261120-7f3a" in outcome.text
    assert f'href="{url}"' in str(outcome.html)
    with pytest.raises(UsageError, match="tensorboard needs JOB"):
        execute(["tensorboard"], Notebook())
