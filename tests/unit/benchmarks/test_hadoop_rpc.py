"""Hadoop RPC of the simulations: the proof of a token, and messages against their decoder."""

from __future__ import annotations

import socket
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_runtime.protobuf import fields, varint

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

import hadoop_rpc


def test_the_proof_is_that_of_the_standard_s_example() -> None:
    """RFC 2831, section 4, which has ``charset=utf-8`` and a server for mail."""
    challenge = 'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess'
    words = ("chris", "secret", "imap/elwood.innosoft.com", "OA6MHXh6VqTrRk")
    proof = hadoop_rpc.digest_response(challenge, *words)
    assert "response=d388dad90d4bbd760a152321f2143af7," in proof
    assert 'realm="elwood.innosoft.com"' in proof


def test_a_message_has_the_fields_that_its_decoder_finds() -> None:
    inner = hadoop_rpc.encode((1, "127.1.0.1"), (2, 45454))
    message = hadoop_rpc.encode((1, inner), (2, 0), (3, 300), (3, 1 << 40), (4, b""), (5, -1000))
    found = [(1, inner), (2, 0), (3, 300), (3, 1 << 40), (4, b""), (5, (1 << 64) - 1000)]
    assert list(fields(message)) == found
    assert list(hadoop_rpc.messages_in(message, 1)) == [inner]


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
            _, (self.context,) = _parts(data.read(struct.unpack(">I", data.read(4))[0]))
            answers = []
            for _ in range(self._calls):
                header, body = _parts(data.read(struct.unpack(">I", data.read(4))[0]))
                number = dict(fields(header))[3]
                assert isinstance(number, int)
                self.requests.append(body[1])
                if body[1] == b"fail":
                    text = hadoop_rpc.encode((1, number // 2), (2, 1), (4, "E"), (5, "why"))
                    answers.append(bytes((len(text),)) + text)
                else:
                    text = hadoop_rpc.encode((1, number // 2), (2, 0))
                    reply = hadoop_rpc.encode((1, body[1] + b"!"))
                    answers.append(bytes((len(text),)) + text + bytes((len(reply),)) + reply)
            for answer in reversed(answers):
                connection.sendall(struct.pack(">I", len(answer)) + answer)


def _parts(frame: bytes) -> tuple[bytes, list[bytes]]:
    found, place = [], 0
    while place < len(frame):
        length, place = varint(frame, place)
        found.append(frame[place : place + length])
        place += length
    return found[0], found[1:]


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
