"""Attempts of a second Unix user of this machine: a table of what is tried and how it is refused.

The directories of these tests lie below one that the second user may enter, so that each refusal is
the product's own. The attempts on a cluster are in ``tests/cluster/jobs/test_second_user_yarn.py``.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.config import load_config
from submarine_jobs.errors import SubmarineError
from submarine_jobs.model import Profile
from submarine_jobs.tensorboards import Process as TensorBoard
from submarine_kernel.remote import SocketDirectory
from submarine_runtime.gpus import DeviceLocks, LockDirectories
from submarine_runtime.network import bind_port
from submarine_runtime.yarn import PageServer
from submarine_zeppelin.thrift import AccessPolicy
from tests.local.server.jupyter_server import API, Server
from tests.second_user import SECOND, as_user, needs_root
from tests.submission import submitting
from tests.unit.zeppelin.thrift.test_access import served
from tests.unit.zeppelin.thrift.test_protocol import recorded
from tests.waiting import until

pytestmark = needs_root
PROGRAM = "import time\nprint('private', flush=True)\ntime.sleep(600)\n"
DENIED = r"PermissionError: \[Errno 13\] Permission denied"
NOT_PERMITTED = r"(PermissionError: \[Errno 1\] Operation not permitted|" + DENIED + ")"
UNAUTHORIZED = r"^401 "
CLOSED = r"^(b''|ConnectionResetError|BrokenPipeError)"


@dataclass
class World:
    """What the first user, root, has on the machine."""

    top: Path
    single: Job
    gang: Job
    server: Server
    board: TensorBoard
    kernel: SocketDirectory
    page: str
    zeppelin: int

    def value(self, text: str) -> str:
        """Fill in what an attempt is about."""
        handle = self.single.handle
        assert handle is not None
        live = {
            one: json.loads(self.file(one, "live.json").read_text()) for one in ("single", "gang")
        }
        known = {
            "STATE": f"{self.top}/state",
            "JOB": str(self.file("single", "")),
            "SCRATCH": handle["scratch"],
            "PID": str(handle["pid"]),
            "AGENT": str(live["single"]["port"]),
            "COORDINATOR": str(live["gang"]["port"]),
            "SERVER": str(self.server.port),
            "API": API,
            "ID": self.single.id,
            "BOARD": str(self.board.socket),
            "KERNEL": self.kernel.paths["iopub"],
            "PAGE": self.page,
            "ZEPPELIN": str(self.zeppelin),
            "TOP": str(self.top),
        }
        return re.sub(r"<([A-Z]+)>", lambda found: known[found[1]], text)

    def file(self, which: str, name: str) -> Path:
        job: Job = getattr(self, which)
        assert job.handle is not None
        return Path(job.handle["job_dir"], name)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    # Not pytest's directory, which is closed to other users as a whole.
    top = Path(tempfile.mkdtemp(dir="/tmp", prefix="submarine-users-"))
    top.chmod(0o755)
    server = Server(top)
    session = Session(Profile(backend="local", state_dir=top / "state"))
    (top / "board").mkdir(mode=0o700)
    board = TensorBoard(top / "board", top / "board" / "log", top / "board")
    kernel = SocketDirectory(top / "state", {})
    listening = socket.socket(socket.AF_UNIX)
    stack = ExitStack()
    try:
        server.start()
        submit = stack.enter_context(submitting(session))
        single, gang = submit(PROGRAM), submit(PROGRAM, instances=2)
        board.start()
        listening.bind(kernel.paths["iopub"])
        listening.listen()
        for job in (single, gang):
            until(partial(_prints, job), "the jobs run")
        page = PageServer(bind_port, "127.0.0.1", None, lambda: b"")
        page.serve()
        with served(AccessPolicy("127.0.0.1", 1)) as (_, port):
            yield World(top, single, gang, server, board, kernel, page.url, port)
    finally:
        listening.close()
        kernel.remove()
        board.stop()
        stack.close()
        server.stop()
        shutil.rmtree(top)


def _prints(job: Job) -> bool:
    return b"private" in job.log("stdout").data


def get(port: str, path: str, headers: str = "{}", method: str = "GET", tls: bool = True) -> str:
    """Code that sends a request and returns the status and the beginning of the answer."""
    kind = "HTTPSConnection" if tls else "HTTPConnection"
    context = ", context=ssl._create_unverified_context()" if tls else ""
    return f"""
        connection = http.client.{kind}("127.0.0.1", {port}, timeout=20{context})
        connection.request({method!r}, {path!r}, None, {headers})
        reply = connection.getresponse()
        return reply.status, reply.read()[:80]
        """


UPGRADE = '{"Connection": "Upgrade", "Upgrade": "submarine", "Authorization": "Bearer wrong"}'
WEBSOCKET = (
    '{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",'
    ' "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}'
)
WRONG = '{"Authorization": "Bearer wrong"}'
INTERPRET = recorded("service", "interpret")[0]

#: What is tried, the code of the attempt, and what is observed.
ATTEMPTS = {
    # Files of the local backend.
    "list the state directory": ("return os.listdir('<STATE>')", DENIED),
    "read the index of jobs": ("return open('<STATE>/jobs.sqlite').read()", DENIED),
    "list all jobs": ("return os.listdir('<STATE>/jobs')", DENIED),
    "list a job's directory": ("return os.listdir('<JOB>')", DENIED),
    "read a job's secret": ("return open('<JOB>/secret.json').read()", DENIED),
    "read the agent's secret": ("return open('<SCRATCH>/secret.json').read()", DENIED),
    "read the agent's configuration": ("return open('<SCRATCH>/agent.json').read()", DENIED),
    "read a job's captured source": ("return open('<SCRATCH>/program/main.py').read()", DENIED),
    "read a job's bundle": ("return open('<JOB>/bundle.zip', 'rb').read()", DENIED),
    "read a job's output": ("return open('<SCRATCH>/worker-0.stdout.log').read()", DENIED),
    "read a shipped log": ("return os.listdir('<JOB>/logs')", DENIED),
    "read a job's events": ("return os.listdir('<JOB>/events')", DENIED),
    "forge a record": ("return open('<JOB>/record.json', 'w')", DENIED),
    "forge a cancel": ("return open('<JOB>/cancel.json', 'w')", DENIED),
    "replace the runtime in the cache": (
        "return open('<STATE>/jobs/cache/runtime.zip', 'w')",
        DENIED,
    ),
    "move the state directory away": ("return os.rename('<STATE>', '<TOP>/mine')", DENIED),
    "confirm a project's file": ("return open('<STATE>/trusted/x', 'w')", DENIED),
    "read the Jupyter server's own file with its token": (
        "return [open('<TOP>/runtime/' + one).read() for one in os.listdir('<TOP>/runtime')]",
        DENIED,
    ),
    # Processes.
    "read the agent's environment": ("return open('/proc/<PID>/environ').read()", DENIED),
    "list the agent's open files": ("return os.listdir('/proc/<PID>/fd')", DENIED),
    "end the agent": ("return os.kill(<PID>, 15)", NOT_PERMITTED),
    # Ports of jobs.
    "ask an agent for the state": (get("<AGENT>", "/v1/status"), UNAUTHORIZED),
    "read a log with a wrong token": (
        get("<AGENT>", "/v1/log?task=worker:0&stream=stdout&offset=0&limit=9", WRONG),
        UNAUTHORIZED,
    ),
    "follow a job": (get("<AGENT>", "/v1/stream?events=0&stdout=0"), UNAUTHORIZED),
    "take the stacks of a job": (get("<AGENT>", "/v1/stacks"), UNAUTHORIZED),
    "cancel a job": (get("<AGENT>", "/v1/cancel", WRONG, "POST"), UNAUTHORIZED),
    "save a model": (get("<AGENT>", "/v1/save", WRONG, "POST"), UNAUTHORIZED),
    "open a tunnel": (get("<AGENT>", "/v1/tunnel?name=kernel", UPGRADE), UNAUTHORIZED),
    "ask a coordinator for the state": (get("<COORDINATOR>", "/v1/status"), UNAUTHORIZED),
    "join a gang": (get("<COORDINATOR>", "/v1/link", UPGRADE), UNAUTHORIZED),
    "send a coordinator away": (
        get("<COORDINATOR>", "/v1/stand_down", WRONG, "POST"),
        UNAUTHORIZED,
    ),
    "speak to an agent without TLS": (
        """
        plain = socket.create_connection(("127.0.0.1", <AGENT>))
        plain.sendall(b"GET /v1/status HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
        return plain.recv(100)
        """,
        CLOSED,
    ),
    # The Jupyter server.
    "list jobs of the server": (get("<SERVER>", "<API>jobs", tls=False), r"^403 "),
    "read a log of the server": (
        get("<SERVER>", "<API>jobs/<ID>/log?stream=stdout", tls=False),
        r"^403 ",
    ),
    "cancel a job of the server": (
        get("<SERVER>", "<API>jobs/<ID>/cancel", method="POST", tls=False),
        r"^403 ",
    ),
    "open the server's websocket": (
        get("<SERVER>", "<API>channel", WEBSOCKET, tls=False),
        r"^403 ",
    ),
    # Sockets.
    "connect to a TensorBoard": (
        "socket.socket(socket.AF_UNIX).connect('<BOARD>')",
        DENIED,
    ),
    "subscribe to a remote kernel": (
        "socket.socket(socket.AF_UNIX).connect('<KERNEL>')",
        DENIED,
    ),
    # Zeppelin, YARN's page.
    "run a paragraph in Zeppelin's interpreter": (
        f"""
        client = socket.create_connection(("127.0.0.1", <ZEPPELIN>))
        client.sendall({INTERPRET!r})
        return client.recv(100)
        """,
        CLOSED,
    ),
    "read the job's page on YARN": (
        """
        connection = http.client.HTTPConnection("<PAGE>".split("/")[2])
        connection.request("GET", "/")
        return connection.getresponse().status, "refused"
        """,
        r"^403 ",
    ),
}


@pytest.mark.parametrize("name", ATTEMPTS)
def test_a_second_user_is_refused(world: World, name: str) -> None:
    code, refusal = ATTEMPTS[name]
    observed = as_user(world.value(code))
    # A tuple of status and answer, as text.
    observed = re.sub(r"^\((\d+), (.*)\)$", r"\1 \2", observed)
    print(f"{name}: {observed[:200]}")
    assert re.search(refusal, observed), observed
    assert "private" not in observed


def test_the_table_is_long_enough_and_the_first_user_is_not_refused(world: World) -> None:
    assert len(ATTEMPTS) >= 25
    # The refusals are not those of the directory that holds all of this.
    assert "'state'" in as_user(f"return os.listdir({str(world.top)!r})")
    for job in (world.single, world.gang):
        assert not job.record().state.ended
        assert b"private" in job.log("stdout").data
    assert world.server.call("GET", f"jobs/{world.single.id}").status == 200


def test_nothing_secret_is_in_a_command_line(world: World) -> None:
    token = json.loads(world.file("single", "secret.json").read_text())["token"]
    seen = as_user(
        """
        found = []
        for one in os.listdir("/proc"):
            try:
                found.append(open(f"/proc/{one}/cmdline").read())
            except OSError:
                pass
        return "".join(found)
        """
    )
    assert world.single.id in seen
    assert token not in seen


def test_files_that_a_second_user_plants_are_refused(world: World) -> None:
    """Where all users may write: a project's file above the current directory, names in `/tmp`."""
    shared = world.top / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    planted = as_user(
        f"""
        os.chdir({str(shared)!r})
        open("submarine.toml", "w").write('[profiles.default]\\njava_home = "/tmp/evil"\\n')
        os.symlink({str(world.top / "state")!r}, "submarine-devices")
        os.mkdir("submarine-kernels-0", 0o777)
        return sorted(os.listdir("."))
        """
    )
    assert planted == "['submarine-devices', 'submarine-kernels-0', 'submarine.toml']"
    (shared / "project").mkdir()
    with pytest.raises(SubmarineError) as refused:
        load_config({"backend": "local"}, environ={"HOME": str(world.top)}, cwd=shared / "project")
    print(f"a project's file of another user: {refused.value}")
    assert "submarine.toml" in str(refused.value)
    with pytest.raises(
        Exception, match="is not a directory that all users of this node share"
    ) as said:
        DeviceLocks(LockDirectories((), str(shared / "submarine-devices")))
    print(f"a link in place of the device locks: {said.value}")


def test_a_device_of_the_first_user_stays_the_first_users(world: World) -> None:
    sticky, device = world.top / "lock", world.top / "nvidia0"
    sticky.mkdir()
    sticky.chmod(0o1777)
    device.touch(0o666)
    locks = DeviceLocks(
        LockDirectories((str(sticky),), str(world.top / "devices")), {"a": str(device)}
    )
    assert locks.take(["a"], 1)
    observed = as_user(
        f"""
        found = []
        for path in ({str(device)!r}, {str(world.top / "devices" / "a")!r},
                     *({str(sticky)!r} + "/" + one for one in os.listdir({str(sticky)!r}))):
            try:
                found.append(os.unlink(path))
            except OSError as error:
                found.append(error.strerror)
            try:
                found.append(fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB))
            except OSError as error:
                found.append(error.strerror)
        return sorted(set(map(str, found)))
        """,
        SECOND,
    )
    locks.release()
    print(f"remove and take the locks of a device: {observed}")
    # The file of the turn is no device, and is free while no agent takes one.
    assert observed == (
        "['None', 'Operation not permitted', 'Permission denied', "
        "'Resource temporarily unavailable']"
    )
