"""TensorBoard through a real jupyter-server: over real jobs, and before a backend that tells tales.

The second one is a package called tensorboard that answers with the request that it got.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import psutil
import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.model import Profile
from submarine_jobs.tensorboards import Process
from tests.local.server.jupyter_server import BASE, TOKEN, Answer, Server, running
from tests.second_user import as_user, needs_root
from tests.submission import Submit, submitting
from tests.waiting import until

BOARD = BASE + "submarine/tensorboard/"
NOWHERE = "nothing-20261120-7f3a"

#: TensorBoard's own writer; without TensorFlow it is light.
WRITING = """
import os, sys, time, types
sys.modules["tensorboard.compat.notf"] = types.ModuleType("tensorboard.compat.notf")
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter(os.environ["SUBMARINE_TENSORBOARD_DIR"] + "/train")
step = 0
while step < 5 or not os.path.exists(FLAG):
    value = Summary.Value(tag="loss", simple_value=1 / (step + 1))
    writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=[value])))
    writer.flush()
    step += 1
    time.sleep(0.2)
writer.close()
"""

TELLTALE = """
import json, threading

class TensorBoardServer:
    pass

class TensorBoard:
    def __init__(self, plugins, server_class):
        self._make = server_class
    def configure(self, argv):
        self._argv = argv
    def launch(self):
        server = self._make(answer, None)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server.get_url()

def answer(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/away":
        start_response("302 Found", [("Location", "http://elsewhere.example/")])
        return [b""]
    kind = "text/html" if path == "/" else "application/json"
    start_response("200 OK", [
        ("Content-Type", kind), ("Set-Cookie", "login=stolen"), ("Server", "telltale"),
        ("Access-Control-Allow-Origin", "*"), ("X-Own", "1"),
    ])
    told = {k: v for k, v in environ.items() if isinstance(v, str)}
    told["body"] = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode()
    text = json.dumps(told)
    page = f"<html><body><p>{text}</p>url(/font-roboto/x)</body></html>"
    return [(page if path == "/" else text).encode()]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("server")) as made:
        yield made
        boards = boards_of(made)
    assert not any(board.is_running() for board in boards)
    assert scratches(made) == []


@pytest.fixture(scope="module")
def submit() -> Iterator[Submit]:
    with contextlib.ExitStack() as stack:

        def run(server: Server, source: str, name: str = "board") -> Job:
            session = Session(Profile(backend="local", state_dir=server.scratch / "state"))
            return stack.enter_context(submitting(session, memory=512))(source, name)

        yield run


@pytest.fixture(scope="module")
def telltale(tmp_path_factory: pytest.TempPathFactory, submit: Submit) -> Iterator[Server]:
    scratch = tmp_path_factory.mktemp("telltale")
    package = scratch / "fake" / "tensorboard"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "program.py").write_text(TELLTALE)
    (package / "version.py").write_text("VERSION = '2.21.0'\n")
    (package / "default.py").write_text("def get_plugins():\n    return []\n")
    settings = ("--TensorBoards.idle_seconds=4", "--TensorBoards.most=1")
    with running(scratch, *settings, PYTHONPATH=str(scratch / "fake")) as made:
        yield made


@pytest.fixture(scope="module")
def known(telltale: Server, submit: Submit) -> str:
    job = submit(telltale, "print(1)")
    job.wait(60)
    return job.id


def boards_of(server: Server) -> list[psutil.Process]:
    assert server.process is not None
    found = []
    for child in psutil.Process(server.process.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # a zombie is one as well
            if "submarine_jobs.tensorboards.serving" in " ".join(child.cmdline()):
                found.append(child)
    return found


def scratches(server: Server) -> list[Path]:
    parent = server.scratch / "state" / "tensorboard"
    return [p for p in parent.iterdir() if p.is_dir()] if parent.is_dir() else []


def curve(server: Server, jobs: str, run: str) -> list[list[float]]:
    place = f"{BOARD}{jobs}/data/plugin/scalars/scalars?run={quote(run, safe='')}&tag=loss"
    answer = server.call("GET", place)
    points: list[list[float]] = answer.json if answer.status == 200 else []
    return points


def test_a_running_job_is_shown_as_it_grows_and_so_is_its_end(
    server: Server, submit: Submit, tmp_path: Path
) -> None:
    flag = tmp_path / "enough"
    source = WRITING.replace("FLAG", repr(str(flag)))
    job = submit(server, source)
    first = server.call("GET", f"{BOARD}{job.id}/")
    assert first.status == 200
    assert b"<tb-webapp" in first.data
    assert b"url(/font-roboto/" not in first.data
    before = until(lambda: curve(server, job.id, f"{job.id}/train"))
    until(lambda: len(curve(server, job.id, f"{job.id}/train")) > len(before))
    assert b"has written no" not in server.call("GET", f"{BOARD}{job.id}/").data

    other = submit(server, WRITING.replace("FLAG", "'/'"), name="other")
    flag.touch()
    assert job.wait(60).state == "SUCCEEDED"
    assert other.wait(60).state == "SUCCEEDED"
    # The projector would open every file that a job names.
    listing = server.call("GET", f"{BOARD}{job.id}/data/plugins_listing")
    assert "scalars" in listing.json
    assert "projector" not in listing.json
    for page in ("runs", "info?run=train", "metadata?run=train&name=x", "index.js"):
        place = f"{BOARD}{job.id}/data/plugin/projector/{page}"
        assert server.call("GET", place).status == 404
    # Both in one, each a run called by its job; the order in the address does not matter.
    both = f"{other.id},{job.id}"
    all_runs = sorted([f"{job.id}/train", f"{other.id}/train"])
    until(lambda: sorted(server.call("GET", f"{BOARD}{both}/data/runs").json) == all_runs)
    turned = f"{job.id},{other.id}"
    assert len(curve(server, turned, f"{other.id}/train")) == 5
    assert len(boards_of(server)) == 2
    whole = (job.directory.file("tensorboard"), other.directory.file("tensorboard"))
    assert all(Path(path).is_dir() for path in whole)
    # All of what the running job wrote is there, once.
    steps = [point[1] for point in until(lambda: curve(server, job.id, f"{job.id}/train"))]
    assert steps == sorted(set(steps))

    for board in boards_of(server):
        board.kill()
    assert server.call("GET", f"{BOARD}{job.id}/").status == 200
    again = until(lambda: curve(server, job.id, f"{job.id}/train"))
    assert again[-1][1] == again[0][1] + len(again) - 1


@pytest.mark.full
def test_a_running_job_is_shown_at_most_five_seconds_behind(
    server: Server, submit: Submit, tmp_path: Path
) -> None:
    job = submit(server, WRITING.replace("FLAG", repr(str(tmp_path / "enough"))))
    until(lambda: curve(server, job.id, f"{job.id}/train"))
    time.sleep(4)  # The job learns with a delay that it is displayed.
    lags = []
    for _ in range(12):
        points = curve(server, job.id, f"{job.id}/train")
        lags.append(time.time() - points[-1][0])
        time.sleep(0.5)
    (tmp_path / "enough").touch()
    assert max(lags) < 5, lags


def test_other_users_of_this_machine_do_not_reach_it(server: Server, submit: Submit) -> None:
    job = submit(server, "print(1)")
    page = server.call("GET", f"{BOARD}{job.id}/")
    assert f"{job.id} has written no TensorBoard files".encode() in page.data
    for board in boards_of(server):
        assert [c for c in board.net_connections() if c.status == "LISTEN" and c.laddr] == []
        assert "token" not in " ".join(board.cmdline())
    for scratch in scratches(server):
        assert stat.S_IMODE(os.stat(scratch).st_mode) == 0o700


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{NOWHERE}/", 404),
        (f"{NOWHERE}", 404),
        ("../../etc/passwd/", 404),
        ("%2e%2e%2fetc/", 404),
        ("<script>alert(1)</script>/", 404),
        (",/", 404),
        ("/", 404),
        ("localhost:22/", 404),
        ("%68ttp:%2f%2fevil.example/", 404),
    ],
)
def test_what_is_no_job_starts_nothing(
    telltale: Server, known: str, path: str, status: int
) -> None:
    for address in (path, f"{known},{path}"):
        if address == f"{known},,/" or address == f"{known},/":
            continue
        answer = telltale.call("GET", BOARD + address)
        assert answer.status == status, answer.data
        assert b"<script>" not in answer.data
    assert boards_of(telltale) == []


def test_no_credentials_pass_in_either_direction(telltale: Server, known: str) -> None:
    cookie, xsrf = telltale.log_in()
    seen = telltale.call(
        "GET",
        f"{BOARD}{known}/data/x?run=a&token={TOKEN}&tag=b&TOKEN=2",
        Cookie=cookie,
        X_XSRFToken=xsrf,
        X_Forwarded_Access_Token="secret-thing",
        Referer=f"{telltale.origin}{BOARD}?token={TOKEN}",
        Accept="text/event-stream",
    )
    assert seen.status == 200
    told = seen.json
    text = json.dumps(told)
    for secret in (TOKEN, xsrf, cookie.split("=")[-1], "secret-thing", "COOKIE", "AUTHORIZATION"):
        assert secret not in text
    assert told["QUERY_STRING"] == "run=a&tag=b"
    assert told["PATH_INFO"] == "/data/x"
    for name in ("set-cookie", "server", "x-own", "access-control-allow-origin"):
        assert "telltale" not in seen.headers.get(name, "")
        assert name == "server" or name not in seen.headers
    assert "sandbox" in seen.headers["content-security-policy"]
    page = telltale.call("GET", f"{BOARD}{known}/")
    assert "frame-ancestors 'self'" in page.headers["content-security-policy"]
    assert b"url(font-roboto/x)" in page.data
    away = telltale.call("GET", f"{BOARD}{known}/away")
    assert away.status == 502
    assert "location" not in away.headers


def test_unauthenticated_and_cross_site_requests_are_refused(telltale: Server, known: str) -> None:
    place = f"{BOARD}{known}/data/x"
    assert telltale.call("GET", place, token=None).status == 302
    assert telltale.call("POST", place, b"a=1", token=None).status == 403
    cookie, _ = telltale.log_in()

    def visit(method: str, **headers: Any) -> Answer:
        body = b"a=1" if method == "POST" else None
        return telltale.call(method, place, body, token=None, Cookie=cookie, **headers)

    elsewhere = {"Origin": "http://evil.example", "Sec_Fetch_Site": "cross-site"}
    assert visit("POST", Origin=telltale.origin, Sec_Fetch_Site="same-origin").status == 200
    assert visit("POST", **elsewhere).status == 403
    assert visit("POST", Origin="null").status == 403
    assert visit("POST", Sec_Fetch_Site="same-site").status == 403
    assert visit("GET", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors").status == 403
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert visit(method).status in (400, 403, 404, 405), method
    upgrade = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec_WebSocket_Version": "13",
        "Origin": telltale.origin,
    }
    assert visit("GET", **upgrade).status == 400


def test_the_slash_is_added_relative_to_our_own_address(telltale: Server, known: str) -> None:
    bare = telltale.call("GET", f"{BOARD}{known}?darkMode=true&token={TOKEN}")
    assert (bare.status, bare.headers["location"]) == (302, f"{known}/?darkMode=true")
    twice = telltale.call("GET", f"{BOARD}/evil.example")
    assert twice.status == 404


def test_idle_ones_end_and_an_open_page_is_no_sign_of_life(telltale: Server, known: str) -> None:
    status = BASE + "api/status"
    before = telltale.call("GET", status).json["last_activity"]
    assert telltale.call("GET", f"{BOARD}{known}/data/x").status == 200
    assert len(boards_of(telltale)) == 1
    assert len(scratches(telltale)) == 1
    telltale.call("GET", f"{BOARD}{known}/data/x")
    # Asking for the status is none either.
    assert telltale.call("GET", status).json["last_activity"] == before
    until(lambda: not boards_of(telltale))
    until(lambda: not scratches(telltale))
    assert telltale.call("GET", f"{BOARD}{known}/data/x").status == 200


def test_there_are_never_more_than_so_many(telltale: Server, known: str, submit: Submit) -> None:
    second = submit(telltale, "print(2)")
    assert telltale.call("GET", f"{BOARD}{known}/data/x").status == 200
    refused = telltale.call("GET", f"{BOARD}{second.id}/")
    assert refused.status == 409
    assert b"TensorBoards are in use already" in refused.data
    # The idle one ends; its place is free once the server has seen that.
    until(lambda: telltale.call("GET", f"{BOARD}{second.id}/").status == 200)


@pytest.mark.full
def test_a_server_that_is_killed_leaves_nothing_for_long(
    tmp_path: Path, telltale: Server, submit: Submit
) -> None:
    made = Server(tmp_path / "s", **{
        "SUBMARINE_BACKEND": "local", "PYTHONPATH": telltale.environment["PYTHONPATH"],
    })  # fmt: skip
    made.start()
    try:
        job = submit(made, "print(1)")
        assert made.call("GET", f"{BOARD}{job.id}/").status == 200
        [board] = boards_of(made)
        assert made.process is not None
        made.process.send_signal(signal.SIGKILL)
        made.process.wait()
        until(lambda: not board.is_running() or board.status() == psutil.STATUS_ZOMBIE)
        assert len(scratches(made)) == 1
        made.start()
        until(lambda: not scratches(made))
        assert made.call("GET", f"{BOARD}{job.id}/").status == 200
    finally:
        made.stop()
    assert scratches(made) == []


def test_without_tensorboard_there_is_one_sentence(tmp_path: Path, submit: Submit) -> None:
    broken = tmp_path / "fake" / "tensorboard"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('not here')\n")
    environment = {"SUBMARINE_BACKEND": "local", "PYTHONPATH": str(broken.parent)}
    made = Server(tmp_path / "s", **environment)
    made.start()
    try:
        job = submit(made, "print(1)")
        answer = made.call("GET", f"{BOARD}{job.id}/")
        assert answer.status == 409
        assert b"TensorBoard is not installed in the Python" in answer.data
        assert b"pip install tensorboard" in answer.data
        assert scratches(made) == []
    finally:
        made.stop()


@needs_root
def test_another_user_is_refused_at_the_port_on_loopback(tmp_path: Path) -> None:
    process = Process(tmp_path, tmp_path / "log", None)
    process.start()
    try:
        with urlopen(process.url, timeout=30) as page:
            assert page.status == 200
        host, path = process.url.removeprefix("http://").split("/", 1)
        said = as_user(
            f"""
            connection = http.client.HTTPConnection({host!r}, timeout=20)
            connection.request("GET", {"/" + path!r})
            return connection.getresponse().status
            """
        )
        assert said.startswith(("RemoteDisconnected", "ConnectionResetError")), said
    finally:
        process.remove()
