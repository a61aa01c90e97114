"""The REST interface of a real jupyter-server over real jobs of this machine."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from submarine_jobs.client import Job, Session
from submarine_runtime.protocol import State
from tests.local.server.jupyter_server import API, BASE, TOKEN, Server
from tests.submission import Submit

SCRIPT = "<script>alert(1)</script>"
NOWHERE = "nothing-20261120-7f3a"


@pytest.fixture(scope="module")
def done(submit: Submit, server: Server) -> Job:
    """A job that has ended and left a model, launched from a notebook of the server."""
    notebook = server.root / "deep" / "train.ipynb"
    job = submit(
        "import os, pathlib\nprint('hello')\n"
        "pathlib.Path(os.environ['SUBMARINE_MODEL_DIR'], 'w.bin').write_bytes(b'12345')",
        "done",
        notebook=str(notebook),
        cell_id="launching-cell",
        env={"A": "b c"},
    )
    job.wait_success(60)
    return job


def test_health_says_versions_and_that_the_cluster_answers(server: Server) -> None:
    told = server.call("GET", "health").json
    assert told["api"] == 1
    assert told["version"]
    assert (told["backend"], told["reachable"], told["problem"]) == ("local", True, "")


def test_a_view_has_all_that_a_card_shows(server: Server, done: Job) -> None:
    view = server.call("GET", f"jobs/{done.id}").json
    assert view["record"]["job_id"] == done.id
    assert view["record"]["state"] == "SUCCEEDED"
    assert view["source"] == "final"
    assert view["mine"] is True
    assert view["notebook"] == "deep/train.ipynb"
    assert view["cell_id"] == "launching-cell"
    assert view["task_count"] == 1
    assert view["status"].startswith("The program ended with exit code 0")
    assert [task["task"] for task in view["record"]["tasks"]] == ["worker:0"]
    assert "--env='A=b c'" in view["command"] or "'--env=A=b c'" in view["command"]
    assert any(event["state"] == "RUNNING" for event in view["events"])


def test_parts_of_a_job(server: Server, done: Job) -> None:
    tasks = server.call("GET", f"jobs/{done.id}/tasks").json
    assert (tasks["total"], tasks["tasks"][0]["exit_code"]) == (1, 0)
    assert server.call("GET", f"jobs/{done.id}/tasks?offset=1").json == {"tasks": [], "total": 1}
    events = server.call("GET", f"jobs/{done.id}/events").json["events"]
    assert [event["seq"] for event in events] == list(range(len(events)))
    later = server.call("GET", f"jobs/{done.id}/events?after=1&limit=1").json["events"]
    assert later == events[2:3]
    cells = server.call("GET", f"jobs/{done.id}/cells").json["cells"]
    assert [(cell["label"], cell["cell_id"], cell["file"]) for cell in cells] == [
        ("[3]", "cell-1", "main.py")
    ]
    assert "print('hello')" in cells[0]["source"]
    script = server.call("GET", f"jobs/{done.id}/script")
    assert script.headers["content-type"] == "text/plain; charset=utf-8"
    assert b"print('hello')" in script.data
    command = server.call("GET", f"jobs/{done.id}/command").json["command"]
    assert command.startswith("submarine run --name=done --program=")


def test_metrics_come_as_series(server: Server, submit: Submit) -> None:
    job = submit("import time\nfor _ in range(30): time.sleep(0.1)", "measured")
    job.wait_success(60)
    series = server.call("GET", f"jobs/{job.id}/metrics?points=2").json["series"]
    memory = next(one for one in series if one["name"] == "memory")
    assert (memory["task"], memory["attempt"], memory["unit"]) == ("worker:0", "e1-a1", "MiB")
    assert len(memory["t"]) == len(memory["v"]) <= 2
    assert memory["v"][-1] > 1
    assert server.call("GET", f"jobs/{job.id}/metrics?task=../../x").status == 400


def test_models_are_listed_and_saved(server: Server, done: Job) -> None:
    assert server.call("GET", f"jobs/{done.id}/models").json == {"models": []}
    saved = server.call("POST", f"jobs/{done.id}/models", {"name": "best"})
    assert (saved.status, saved.json["name"], saved.json["files"]) == (201, "best", 1)
    again = server.call("POST", f"jobs/{done.id}/models", {"name": "best"})
    assert (again.status, again.json["code"]) == (400, "usage")
    assert "best" in again.json["error"]
    assert server.call("GET", f"jobs/{done.id}/models").json["models"] == [saved.json]
    for version in ("best", ""):
        lineage = server.call("GET", f"jobs/{done.id}/lineage?version={version}").json
        assert (lineage["version"], lineage["rows"][0]) == (version, ["Job", done.id])
        digest = done.directory.spec().bundle_digest[:12]
        assert ["Program", f"main.py, bundle sha256 {digest}"] in lineage["rows"]
    missing = server.call("GET", f"jobs/{done.id}/lineage?version=../x")
    assert (missing.status, missing.json["code"]) == (400, "usage")


def test_the_list_filters_and_pages(server: Server, submit: Submit, done: Job) -> None:
    for number in range(3):
        submit("print(1)", f"paged-{number}").wait_success(60)
    running = submit("import time; time.sleep(600)", "paged-running")
    server.until("jobs?state=RUNNING&text=paged", lambda page: page["total"] == 1)
    seen: list[str] = []
    after: str | None = ""
    total: int | None = None
    while after is not None:
        page = server.call("GET", f"jobs?text=PAGED&limit=2&after={after}").json
        assert total in (None, page["total"])
        total, after = page["total"], page["next"]
        seen += [row["name"] for row in page["jobs"]]
    assert seen == ["paged-running", "paged-2", "paged-1", "paged-0"]
    row = server.call("GET", "jobs?text=done").json["jobs"][0]
    assert (row["notebook"], row["cell_id"]) == ("deep/train.ipynb", "launching-cell")
    ended = server.call("GET", "jobs?state=SUCCEEDED&state=FAILED&text=paged").json
    assert ended["total"] == 3
    for wrong in ("state=HAPPY", "limit=0", "limit=x", "limit=99999", "after=1", f"after={SCRIPT}"):
        assert server.call("GET", f"jobs?{wrong}").status == 400, wrong
    running.cancel()


def test_cancel_ends_a_job_and_a_second_one_is_refused(server: Server, submit: Submit) -> None:
    job = submit("import time; time.sleep(600)", "long")
    server.until(f"jobs/{job.id}", lambda view: view["record"]["state"] == "RUNNING")
    assert server.call("POST", f"jobs/{job.id}/cancel", {"why": "a test"}).status == 202
    view = server.until(f"jobs/{job.id}", lambda view: view["record"]["state"] == "CANCELLED")
    assert view["record"]["reason"] == "cancelled"
    again = server.call("POST", f"jobs/{job.id}/cancel", {})
    assert (again.status, again.json["code"]) == (409, "refused")


def test_rerun_submits_the_same_again(server: Server, done: Job, session: Session) -> None:
    told = server.call("POST", f"jobs/{done.id}/rerun", {"resume": False})
    assert told.status == 201
    again = session.job(told.json["job_id"])
    assert again.wait(60).state is State.SUCCEEDED
    assert again.directory.spec().rerun_of == done.id
    view = server.call("GET", f"jobs/{again.id}").json
    assert view["cell_id"] == "launching-cell"


def test_a_failure_is_reported_with_its_cell_and_advice(server: Server, submit: Submit) -> None:
    job = submit(f"x = {SCRIPT!r}\nraise ValueError(x)", SCRIPT)
    job.wait(60)
    answer = server.call("GET", f"jobs/{job.id}")
    failure = answer.json["record"]["failure"]
    assert failure["message"] == SCRIPT, "text is text; the browser shows it as such"
    assert (failure["frames"][-1]["cell_id"], failure["frames"][-1]["cell_line"]) == ("cell-1", 3)
    assert answer.json["advice"]
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    "wrong",
    [
        "..%2F..%2Fetc",
        "%2e%2e",
        "done",
        "last",
        SCRIPT,
        "a-20261120-7f3a%0a",
        "a-20261120-7f3a%2F..%2Fb",
        "x" * 4000,
        "a-20261120-7f3a%00",
    ],
)
def test_what_is_no_job_id_is_not_found(server: Server, wrong: str) -> None:
    path = wrong.replace("<", "%3C").replace(">", "%3E")
    for method, part in (("GET", ""), ("GET", "/script"), ("POST", "/cancel"), ("POST", "/rerun")):
        answer = server.call(method, f"jobs/{path}{part}", {} if method == "POST" else None)
        assert answer.status == 404
        assert SCRIPT.encode() not in answer.data
        assert len(answer.data) < 1000


def test_an_unknown_job_and_an_unknown_address(server: Server) -> None:
    for path in (f"jobs/{NOWHERE}", f"jobs/{NOWHERE}/tasks", "nothing", f"jobs/{NOWHERE}/x/y"):
        answer = server.call("GET", path)
        assert (answer.status, answer.json["code"]) == (404, "not_found")
    assert server.call("DELETE", f"jobs/{NOWHERE}").status == 405


@pytest.mark.parametrize(
    "body",
    [b"[1]", b"{", b'{"why": 3}', b'{"why": "' + b"x" * 500 + b'"}', b"[" * 60_000, b"\xff"],
)
def test_bodies_that_are_nonsense_are_refused(server: Server, done: Job, body: bytes) -> None:
    answer = server.call("POST", f"jobs/{done.id}/cancel", body)
    assert (answer.status, answer.json["code"]) == (400, "usage")


def test_a_body_that_is_too_large_is_refused_unread(server: Server, done: Job) -> None:
    answer = server.call("POST", f"jobs/{done.id}/cancel", None, Content_Length="100000000")
    assert (answer.status, answer.json["code"]) == (413, "too_large")


def test_no_access_without_a_token(server: Server, done: Job) -> None:
    for method, path in (
        ("GET", "health"),
        ("GET", "jobs"),
        ("GET", f"jobs/{done.id}"),
        ("GET", f"jobs/{done.id}/script"),
        ("GET", "cluster"),
        ("POST", f"jobs/{done.id}/rerun"),
        ("GET", "nothing"),
    ):
        for token in (None, "wrong"):
            answer = server.call(method, path, token=token)
            assert answer.status == 403, (method, path)
            assert "error" in answer.json or "message" in answer.json


def test_another_origin_is_refused_and_the_own_is_not(server: Server, done: Job) -> None:
    cookie, xsrf = server.log_in()
    for origin in (
        "http://evil.example",
        server.origin + "0",
        server.origin.replace("http:", "https:"),
        server.origin + ".evil.example",
        f"http://127.0.0.1:{server.port}@evil.example",
        "http://127.0.0.1",
        "null",
        "",
    ):
        for method in ("GET", "POST"):
            answer = server.call(
                *(method, f"jobs/{done.id}/models"),
                token=None,
                Cookie=cookie,
                Origin=origin,
                X_XSRFToken=xsrf,
            )
            assert answer.status in (403, 404), (origin, method)
            assert b'"models"' not in answer.data
    own = server.call("GET", "jobs", token=None, Cookie=cookie, Origin=server.origin)
    assert own.status == 200


def test_a_page_of_another_site_cannot_post_nor_read(server: Server, done: Job) -> None:
    cookie, xsrf = server.log_in()
    known: dict[str, Any] = {"token": None, "Cookie": cookie, "X_XSRFToken": xsrf}
    for site in ("cross-site", "same-site"):
        there = server.call("POST", f"jobs/{done.id}/rerun", {}, Sec_Fetch_Site=site, **known)
        assert (there.status, there.json["code"]) == (403, "cross_origin")
        read = server.call("GET", "jobs", Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors", **known)
        assert read.status == 403
    link: dict[str, Any] = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert server.call("GET", "jobs", Sec_Fetch_Dest="document", **link, **known).status == 200
    assert server.call("GET", "jobs", Sec_Fetch_Dest="iframe", **link, **known).status == 403


def test_a_cookie_alone_does_not_post(server: Server, done: Job) -> None:
    cookie, xsrf = server.log_in()
    path = f"jobs/{done.id}/models"
    assert server.call("POST", path, {"name": "x"}, token=None, Cookie=cookie).status == 403
    known: dict[str, Any] = {"Cookie": cookie, "X_XSRFToken": xsrf, "Origin": server.origin}
    ok = server.call(
        "POST", path, {"name": "posted"}, token=None, Sec_Fetch_Site="same-origin", **known
    )
    assert ok.status == 201


def test_the_job_of_another_user_can_be_read_but_not_changed(
    server: Server, done: Job, session: Session
) -> None:
    known = session.store.get(done.id)
    assert known is not None
    assert known.record is not None
    record = Path(done.directory.path) / "record.json"
    before = record.read_text()
    told = json.loads(before)
    record.write_text(json.dumps({**told, "user": "grace"}))
    session.store.put(replace(known, record=replace(known.record, user="grace")))
    try:
        # A view is good for a second.
        server.until(f"jobs/{done.id}", lambda view: view["mine"] is False)
        for part in ("cancel", "models", "rerun"):
            answer = server.call("POST", f"jobs/{done.id}/{part}", {})
            assert (answer.status, answer.json["code"]) == (403, "forbidden"), part
            assert "grace" in answer.json["error"]
        rows = server.call("GET", "jobs?text=done").json["jobs"]
        assert done.id not in [row["job_id"] for row in rows]
    finally:
        record.write_text(before)
        session.store.put(known)


def test_the_cluster_is_this_machine(server: Server) -> None:
    told = server.call("GET", "cluster").json
    assert (told["backend"], told["queues"], told["problem"]) == ("local", [], "")
    (node,) = told["nodes"]
    assert node["vcores_total"] >= 1
    assert node["memory_total"] > node["memory_used"] > 0
    assert told["gpus_total"] >= told["gpus_free"] >= 0


def test_words_are_completed(server: Server, done: Job) -> None:
    assert server.call("GET", "complete?words=canc").json == {"words": ["cancel"]}
    jobs = server.call("GET", f"complete?words=show&words={done.id[:6]}").json["words"]
    assert done.id in jobs
    assert server.call("GET", "complete?words=run%20/etc/").json == {"words": []}
    assert "--memory" in server.call("GET", "complete?words=run&words=--mem").json["words"]
    assert server.call("GET", f"complete?words={'x' * 500}").status == 400


def test_asking_without_activity_does_not_keep_the_server_alive(server: Server) -> None:
    def active() -> str:
        status = server.call("GET", f"/{BASE.strip('/')}/api/status?no_track_activity=1")
        return str(status.json["last_activity"])

    before = active()
    time.sleep(0.05)
    for path in ("jobs", "health", "cluster"):
        assert server.call("GET", f"{path}?no_track_activity=1").status == 200
    assert active() == before
    server.call("GET", "health")
    assert active() > before


def test_a_change_is_published_on_jupyters_event_bus(server: Server, submit: Submit) -> None:
    async def heard() -> dict[str, Any]:
        url = f"ws://127.0.0.1:{server.port}{BASE}api/events/subscribe"
        request = HTTPRequest(url, headers={"Authorization": f"token {TOKEN}"})
        bus = await websocket_connect(request)
        reading: Any = asyncio.ensure_future(bus.read_message())
        job = await asyncio.to_thread(submit, "import time; time.sleep(600)", "told")

        async def next_of(*states: str) -> dict[str, Any]:
            nonlocal reading
            while True:
                # The server observes jobs only while they are displayed.
                await asyncio.to_thread(server.call, "GET", "jobs")
                while reading.done():
                    told = json.loads(reading.result())
                    reading = asyncio.ensure_future(bus.read_message())
                    if told["job_id"] == job.id and (not states or told["state"] in states):
                        return dict(told)
                await asyncio.wait([reading], timeout=0.5)

        await next_of()  # it is known to go on: only then its end is a change
        await asyncio.to_thread(server.call, "POST", f"jobs/{job.id}/cancel", {})
        told = await next_of("CANCELLED")
        bus.close()
        while await asyncio.wait_for(reading, 10) is not None:
            reading = asyncio.ensure_future(bus.read_message())
        return told

    told = asyncio.run(asyncio.wait_for(heard(), 120))
    assert told["schema_id"] == "https://events.jupyter-submarine.org/job_changed/v1"


def test_the_api_is_nowhere_but_below_the_base_url(server: Server) -> None:
    assert server.call("GET", "/submarine/api/v1/health").status == 404
    assert server.call("GET", API + "health").status == 200


def test_nothing_of_all_this_has_failed_inside(server: Server) -> None:
    text = server.log.read_text()
    assert "Traceback" not in text, text[-4000:]
    assert max(map(len, text.splitlines())) < 6000
