"""Modules of a notebook server's program: use, TLS listener, validation of links."""

from __future__ import annotations

import http.server
import json
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.access import create_secret, tls_context
from submarine_kernel.notebook_server.access import NotebookAccess, endpoint_in
from submarine_kernel.notebook_server.container.application import Application, newest_change
from submarine_kernel.notebook_server.container.environment import (
    ContainerEnvironment,
    free_port,
    token_of,
)
from submarine_kernel.notebook_server.container.lab import Lab
from submarine_kernel.notebook_server.container.tls_listener import TlsListener
from submarine_kernel.notebook_server.container.zeppelin import Zeppelin
from submarine_kernel.notebook_server.submission import program


class _Jupyter(http.server.BaseHTTPRequestHandler):
    """Fake Jupyter server with the lists ``lists``."""

    lists: dict[str, Any] = {}
    token = ""

    def do_GET(self) -> None:
        name = self.path.partition("?")[0].rpartition("/")[2]
        good = self.headers.get("Authorization") == f"token {self.token}"
        self.send_response(200 if good else 403)
        self.end_headers()
        self.wfile.write(json.dumps(self.lists.get(name, [])).encode() if good else b"{}")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def container(tmp_path: Path) -> ContainerEnvironment:
    """The environment of a container."""
    secret = create_secret("j")
    (tmp_path / "notebooks").mkdir()
    words = {"token": secret.token, "certificate": secret.certificate, "key": secret.key}
    return ContainerEnvironment(
        str(tmp_path), str(tmp_path / "notebooks"), "127.0.0.1", free_port(), words
    )


@pytest.fixture
def lab(container: ContainerEnvironment) -> Iterator[Lab]:
    """The application with a fake Jupyter server."""
    handler = type("Handler", (_Jupyter,), {"token": container.token, "lists": {}})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        lab = Lab(container)
        lab.port = server.server_address[1]
        lab.lists = handler.lists  # type: ignore[attr-defined]
        yield lab
        server.shutdown()


def test_last_use_is_a_busy_kernel_or_its_last_activity(lab: Any) -> None:
    assert lab.last_used() == 0.0
    lab.lists["kernels"] = [
        {"execution_state": "idle", "last_activity": "2026-11-20T10:00:00.5Z"},
        {"execution_state": "idle", "last_activity": "2026-11-20T12:00:00.000000Z"},
    ]
    assert lab.last_used() == 1795176000.0
    lab.lists["terminals"] = [{"name": "1", "last_activity": "2026-11-20T13:00:00Z"}]
    assert lab.last_used() == 1795176000.0 + 3600
    before = time.time()
    lab.lists["kernels"][0]["execution_state"] = "busy"
    assert lab.last_used() >= before
    for nonsense in ("{}", ["x", 1, {"last_activity": None}], None):
        lab.lists["kernels"] = nonsense
        assert lab.last_used() == 1795176000.0 + 3600
    lab.port = free_port()
    assert lab.last_used() == 0.0


def test_a_change_in_the_future_counts_as_now(tmp_path: Path) -> None:
    assert newest_change(str(tmp_path)) == 0.0
    (tmp_path / "deep").mkdir()
    file = tmp_path / "deep" / "x.ipynb"
    file.write_text("")
    os.utime(file, (1000, 1000))
    assert newest_change(str(tmp_path)) == 1000.0
    os.utime(file, (time.time() + 1e6,) * 2)
    assert newest_change(str(tmp_path)) <= time.time()


def test_the_listener_forwards_both_directions_over_tls(container: ContainerEnvironment) -> None:
    with socket.create_server(("127.0.0.1", 0)) as inside:
        listener = TlsListener(
            "127.0.0.1", container.port, container.tls(), inside.getsockname()[1]
        )
        assert not (Path(container.root) / "listener.pem").exists()
        with socket.create_connection(("127.0.0.1", container.port), 30) as unauthenticated:
            other = tls_context(create_secret("other"))
            with pytest.raises(ssl.SSLError):
                other.wrap_socket(unauthenticated)
        with socket.create_connection(("127.0.0.1", container.port), 30) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert plain.recv(100)[:4] != b"HTTP"
        context = ssl.create_default_context(cadata=container.secret["certificate"])
        context.check_hostname = False
        connected = socket.create_connection(("127.0.0.1", container.port), 30)
        with context.wrap_socket(connected) as client:
            inside.settimeout(30)
            client.sendall(b"x")  # A silent connection is not forwarded.
            served, _ = inside.accept()
            with served:
                served.settimeout(30)
                client.sendall(b"x" * 299_999)
                got = 0
                while got < 300_000:
                    got += len(served.recv(1 << 16))
                served.sendall(b"and back")
                assert client.recv(100) == b"and back"
            assert client.recv(100) == b""
        listener.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", container.port), 30)


def test_a_taken_port_is_an_error(container: ContainerEnvironment) -> None:
    with (
        socket.create_server(("127.0.0.1", container.port)),
        pytest.raises(OSError, match="Address already in use"),
    ):
        TlsListener("127.0.0.1", container.port, container.tls(), 1)


@pytest.mark.parametrize(
    "link",
    [
        "",
        "http://host:1/lab",
        "https://notebook-0/lab",
        "https://host:99999/lab",
        "https://a@host:1/lab",
        "https://host:1/lab?token=x",
        "https://host:1/lab\nhttps://other:1/",
        "javascript:alert(1)",
    ],
)
def test_an_invalid_link_is_ignored(link: str) -> None:
    assert endpoint_in({"JupyterLab": link}) is None


def test_the_url_has_the_token() -> None:
    endpoint = endpoint_in(
        {"Docs": "https://docs/", "JupyterLab": "https://node-1.example:17001/lab"}
    )
    assert endpoint is not None
    access = NotebookAccess(endpoint, "to ken")
    assert access.url() == "https://node-1.example:17001/lab?token=to%20ken"
    assert access.url("http://127.0.0.1:8") == "http://127.0.0.1:8/lab?token=to%20ken"
    assert "ken" not in repr(access)
    six = endpoint_in({"Zeppelin": "https://[::1]:17001/"})
    assert six is not None
    assert (six.host, NotebookAccess(six, "t").url(), NotebookAccess(six, "t").user) == (
        "[::1]",
        "https://[::1]:17001/",
        "submarine",
    )


def test_the_token_is_derived_from_the_jobs_and_does_not_reveal_it(
    container: ContainerEnvironment,
) -> None:
    assert container.token == token_of(container.secret["token"]) != token_of("another")
    assert container.secret["token"] not in repr(container) + container.token


def test_configurations_are_private(container: ContainerEnvironment, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "zeppelin.sh").write_text("")
    apps: list[Application] = [Lab(container), Zeppelin(container, str(home))]
    for app in apps:
        words = [*app.command(), *app.variables(), *app.variables().values()]
        assert container.token not in " ".join(words)
    holding = [p for p in Path(container.root).rglob("*") if p.is_file()]
    holding = [path for path in holding if container.token in path.read_text()]
    assert {path.name for path in holding} == {"jupyter_server_config.json", "shiro.ini"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in holding)


def test_the_program_imports_no_package_of_the_project() -> None:
    files = program().files
    assert {"main.py", "submarine_notebook/main.py", "submarine_notebook/__init__.py"} <= set(files)
    for name, content in files.items():
        compile(content, name, "exec")
        for package in (b"submarine_jobs", b"submarine_kernel", b"submarine_runtime"):
            assert b"import " + package not in content
            assert b"from " + package not in content
