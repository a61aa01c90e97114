"""The call that unregisters an application, by Hadoop's own RPC server with each protection."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import pytest

from submarine_minicluster.hadoop import ensure_jars
from submarine_minicluster.machine import find_java
from submarine_minicluster.settings import PROTECTIONS, Settings
from submarine_runtime.kerberos import Token, token_bytes
from submarine_runtime.protocol import LogServer
from submarine_runtime.yarn import UnregistrationError, unregister, unregistration

pytestmark = pytest.mark.full

SOURCE = Path(__file__).with_name("SchedulerPort.java")
ENVIRON = {"NM_HOST": "n1", "NM_PORT": "8041", "CONTAINER_ID": "container_1_1_01_1", "USER": "ada"}


@dataclass
class Port:
    """A scheduler port: its address, a token for it, and what the server prints."""

    server: LogServer
    token: Token
    output: IO[str]


@pytest.fixture(scope="module", params=PROTECTIONS)
def port(request: pytest.FixtureRequest) -> Iterator[Port]:
    java = find_java()
    jars = ensure_jars(Settings().hadoop, java, lambda _line: None)
    command = [str(java.binary), "-cp", f"{jars}/*", str(SOURCE), request.param]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            number, identifier, password = process.stdout.readline().split()
            secret = bytes.fromhex(identifier), bytes.fromhex(password)
            token = Token("", *secret, "YARN_AM_RM_TOKEN", "")
            server = LogServer("http://jhs/logs", [f"127.0.0.1:{number}"])
            yield Port(server, token, process.stdout)
        finally:
            process.kill()


def set_token(token: Token, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give this process the environment of the master's container."""
    monkeypatch.setattr(unregistration, "LIMIT", 60.0)  # The server may be slow on a busy machine.
    (directory / "tokens").write_bytes(token_bytes([token]))
    tokens = {"HADOOP_TOKEN_FILE_LOCATION": str(directory / "tokens")}
    for name, value in {**ENVIRON, **tokens}.items():
        monkeypatch.setenv(name, value)


def test_hadoop_takes_the_call(port: Port, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second answer is that the end is stored."""
    set_token(port.token, tmp_path, monkeypatch)
    detail = "It failed: é. " + "x" * 900
    assert unregister(port.server, succeeded=False, detail=detail)
    url = "http://jhs/logs/n1:8041/container_1_1_01_1/container_1_1_01_1/ada/"
    expected = ["appattempt_1_0001_000001", "FAILED", detail, f"{url}submarine-job.txt/?start=0"]
    for _call in range(2):
        assert port.output.readline().rstrip("\n").split("\t") == expected


def test_hadoop_refuses_another_password(
    port: Port, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_token(replace(port.token, password=b"another"), tmp_path, monkeypatch)
    monkeypatch.setattr(unregistration, "LIMIT", 1.0)  # Until then it is repeated.
    with pytest.raises(UnregistrationError, match="YARN did not take the address"):
        unregister(port.server, succeeded=True, detail="")
