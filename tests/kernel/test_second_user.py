"""Another user of this machine has no access to code and output of a kernel."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

from submarine_jobs.access import TunnelPorts
from submarine_jobs.backends.yarn.driver.process import _wait_for_port
from submarine_kernel.kernelspecs import install_kernel
from submarine_kernel.remote import SocketDirectory
from tests.kernel.remote_kernels import Remote, execute, kernels_of, local_session

SECRET = "a word that nobody else may read"
OTHER = 65534

#: Subscribes to addresses, without a key, and prints the messages.
LISTENER = """\
import json, os, sys, time
import zmq
user, seconds, *urls = sys.argv[1:]
if int(user) != os.geteuid():
    os.setgroups([]); os.setgid(int(user)); os.setuid(int(user))
context = zmq.Context()
poller = zmq.Poller()
for url in urls:
    listener = context.socket(zmq.SUB)
    listener.linger = 0
    listener.subscribe(b"")
    listener.connect(url)
    poller.register(listener, zmq.POLLIN)
print("ready", flush=True)
end = time.monotonic() + float(seconds)
heard = []
while time.monotonic() < end and not sum(map(len, heard)) > 100_000:
    for found, _ in poller.poll(100):
        heard += found.recv_multipart()
print(json.dumps([part.decode("utf-8", "replace") for part in heard]))
"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as a second Unix user")


@pytest.fixture
def root() -> Iterator[Path]:
    """A directory that every user can enter; pytest's directory would hide the protection."""
    made = Path(tempfile.mkdtemp(prefix="second-user-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def remote(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    with kernels_of(local_session(root), root, monkeypatch, "local") as made:
        made.install()
        yield made


@contextlib.contextmanager
def listening(user: int, seconds: float, *urls: str) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-c", LISTENER, str(user), str(seconds), *urls]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as listener:
        assert listener.stdout is not None
        assert listener.stdout.readline() == "ready\n"
        yield listener


def address(info: Mapping[str, Any], channel: str) -> str:
    """Return the address for a client."""
    port = info[f"{channel}_port"]
    between = ":" if info["transport"] == "tcp" else "-"
    return f"{info['transport']}://{info['ip']}{between}{port}"


def heard(listener: subprocess.Popen[str]) -> str:
    assert listener.stdout is not None
    return " ".join(json.loads(listener.stdout.readline()))


@needs_root
def test_a_remote_kernel_is_not_readable(remote: Remote) -> None:
    manager, client = remote.start()
    info = manager.get_connection_info()
    url = address(info, "iopub")
    with listening(OTHER, 2.0, url) as other, listening(os.geteuid(), 2.0, url) as owner:
        for _ in range(20):
            assert execute(client, f"print({SECRET!r})") == ("ok", SECRET + "\n")
        # The owner can subscribe with the same program, without a key.
        assert SECRET in heard(owner)
        assert heard(other) == ""
    attempt = (
        "import os, socket, sys\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "for path in sys.argv[1:]:\n"
        "    try: socket.socket(socket.AF_UNIX).connect(path); print('connected')\n"
        "    except OSError as error: print(type(error).__name__)\n"
        "try: print(os.listdir(os.path.dirname(sys.argv[1])))\n"
        "except OSError as error: print(type(error).__name__)\n"
        "try: print(open(sys.argv[-1]).read())\n"
        "except OSError as error: print(type(error).__name__)\n"
    )
    paths = [f"{info['ip']}-{port}" for name, port in info.items() if name.endswith("_port")]
    words = [sys.executable, "-c", attempt, *paths, manager.connection_file]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert said == ["PermissionError"] * (len(paths) + 3)


@needs_root
@pytest.mark.parametrize("setting", [{"transport_encryption": "required"}, {"transport": "ipc"}])
def test_a_local_kernel_with_ipc_is_not_readable(
    root: Path, monkeypatch: pytest.MonkeyPatch, setting: dict[str, str]
) -> None:
    """By default Jupyter's local kernels publish their output to every user of the machine."""
    if not set(setting) <= set(KernelManager.class_trait_names()):
        pytest.skip("jupyter_client is older than 8.10")
    monkeypatch.setenv("JUPYTER_PATH", str(root / "share" / "jupyter"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(root / "runtime"))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(root / "state"))
    install_kernel(prefix=str(root))
    manager = KernelManager(kernel_name="submarine", **setting)
    manager.start_kernel()
    try:
        client = manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=120)
        info = manager.get_connection_info()
        with listening(OTHER, 2.0, address(info, "iopub")) as other:
            for _ in range(20):
                assert execute(client, f"print({SECRET!r})") == ("ok", SECRET + "\n")
            assert heard(other) == ""
        client.stop_channels()
    finally:
        manager.shutdown_kernel(now=True)
        manager.context.destroy(linger=0)


def test_the_sockets_are_removed_with_the_kernel(remote: Remote) -> None:
    kernels = remote.root / "state" / "kernels"
    manager, client = remote.start()
    directory = Path(str(manager.get_connection_info()["ip"])).parent
    assert directory.parent == kernels
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o700 for each in (kernels, directory))
    # Jupyter deletes the files of the sockets when it restarts a kernel.
    before = manager.get_connection_info()
    manager.restart_kernel(now=True)
    client.wait_for_ready(timeout=120)
    assert manager.get_connection_info() == before
    assert execute(client, "print(1)") == ("ok", "1\n")
    assert execute(remote.connect(manager), "print(2)") == ("ok", "2\n")
    client.stop_channels()
    manager.shutdown_kernel()
    assert not directory.exists()


def test_sockets_of_a_killed_server_are_removed_and_their_paths_are_free(
    remote: Remote,
) -> None:
    server, said = remote.serve()
    left = Path(said["info"]["connection_info"]["ip"]).parent
    server.kill()
    server.wait()
    assert left.is_dir()
    made = SocketDirectory(remote.root / "state")
    assert not left.exists()
    again = SocketDirectory(remote.root / "state", said["info"]["connection_info"])
    assert Path(again.ip).parent == left
    third = SocketDirectory(remote.root / "state", again.connection)  # In use.
    assert third.ip != again.ip
    for each in (made, again, third):
        each.remove()
        assert not Path(each.ip).parent.exists()


def test_long_state_directories_and_other_users_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 100)
    made = SocketDirectory(long)
    assert all(len(os.fsencode(path)) < 107 for path in made.paths.values())
    made.remove()
    # A directory that other users can write to is not used.
    shared = tmp_path / "kernels"
    shared.mkdir()
    shared.chmod(0o777)
    made = SocketDirectory(tmp_path)
    assert Path(made.ip).parent.parent != shared
    made.remove()


#: Connects to a port as another user, sends bytes, and prints the answer within 2 s.
CALLER = """\
import encodings.idna, os, socket, sys, time
os.setgroups([]); os.setgid(65534); os.setuid(65534)
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5)
connection.settimeout(2)
try:
    connection.sendall(bytes.fromhex(sys.argv[2]))
    print(len(connection.recv(100)))
except OSError as error:
    print(type(error).__name__)
"""


@needs_root
def test_a_forwarded_port_rejects_other_users() -> None:
    async def talk() -> None:
        ports = TunnelPorts(["app"])
        try:
            port = (await ports.start())["app"]
            words = [sys.executable, "-c", CALLER, str(port), b"GET / HTTP/1.1".hex()]
            other = await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE)
            said = (await other.communicate())[0].decode().strip()
            assert said in ("0", "ConnectionResetError", "BrokenPipeError")
            # A connection of this user waits for the job, whose address is not known yet.
            with socket.create_connection(("127.0.0.1", port)) as own:
                own.setblocking(False)
                receiving = asyncio.get_running_loop().sock_recv(own, 1)
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(receiving, 0.3)
            await asyncio.sleep(0.05)
        finally:
            ports.close()

    asyncio.run(asyncio.wait_for(talk(), 60))


@needs_root
def test_another_user_does_not_disturb_the_start_of_the_driver(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as callback,
        socket.create_server(("127.0.0.1", 0)) as driver,
    ):
        port, wanted = callback.getsockname()[1], driver.getsockname()[1]
        false = struct.pack("!i", 1).hex()
        others = [
            subprocess.Popen(
                [sys.executable, "-c", CALLER, str(port), sent], stdout=subprocess.DEVNULL
            )
            for sent in ("", "00", false, "")
        ]
        with socket.create_connection(("127.0.0.1", port), 5) as closed:
            closed.sendall(bytes.fromhex(false))

        def name_port() -> None:
            time.sleep(1.0)
            with socket.create_connection(("127.0.0.1", port), 5) as connection:
                connection.sendall(struct.pack("!i", wanted))

        naming = threading.Thread(target=name_port)
        naming.start()
        try:
            found = _wait_for_port(callback, os.getpid(), tmp_path, time.monotonic() + 20)
            assert found == wanted
        finally:
            naming.join()
            for other in others:
                other.kill()
                other.wait()
