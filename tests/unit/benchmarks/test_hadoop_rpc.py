"""Hadoop RPC of the simulations: the proof of a token, and messages against their decoder."""

from __future__ import annotations

import socket
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_runtime.protobuf import delimited, encode, fields, parts

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

import hadoop_rpc


class Server:
    """Accepts one connection, and answers its calls in the reverse order."""

    def __init__(self, calls: int) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._socket.getsockname()
        self.greeting, self.context, self.requests = b"", b"", list[bytes]()
        self._calls = calls
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._thread.join(20)
        self._socket.close()

    def _serve(self) -> None:
        connection, _ = self._socket.accept()
        with connection, connection.makefile("rb") as data:
            self.greeting = data.read(7)
            _, self.context = parts(data.read(struct.unpack(">I", data.read(4))[0]))
            answers = []
            for _ in range(self._calls):
                header, *body = parts(data.read(struct.unpack(">I", data.read(4))[0]))
                number = dict(fields(header))[3]
                assert isinstance(number, int)
                self.requests.append(body[1])
                if body[1] == b"fail":
                    text = encode((1, number // 2), (2, 1), (4, "E"), (5, "why"))
                    answers.append(delimited(text))
                else:
                    text = encode((1, number // 2), (2, 0))
                    reply = encode((1, body[1] + b"!"))
                    answers.append(delimited(text) + delimited(reply))
            for answer in reversed(answers):
                connection.sendall(struct.pack(">I", len(answer)) + answer)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    made = Server(request.param)
    yield made
    made.close()


@pytest.mark.parametrize("server", [3], indirect=True)
def test_responses_have_the_order_of_the_requests(server: Server) -> None:
    connection = hadoop_rpc.RpcConnection(server.address, "a.b.Protocol", "yarn")
    answers = connection.call_all("beat", [b"one", b"two", b"three"])
    connection.close()
    assert [dict(fields(one))[1] for one in answers] == [b"one!", b"two!", b"three!"]
    assert server.greeting == b"hrpc\x09\x00\x00"
    assert dict(fields(server.context))[3] == b"a.b.Protocol"


@pytest.mark.parametrize("server", [1], indirect=True)
def test_an_exception_of_the_server_is_an_error(server: Server) -> None:
    connection = hadoop_rpc.RpcConnection(server.address, "a.b.Protocol", "yarn")
    with pytest.raises(hadoop_rpc.RpcError, match="E: why"):
        connection.call("beat", b"fail")
    connection.close()
