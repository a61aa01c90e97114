"""Delegation tokens in files and URLs, and how requests are authenticated with them."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from submarine_runtime.cluster_http import Access, HttpClient, SignInError
from submarine_runtime.kerberos import (
    HDFS_TOKEN,
    RM_TOKEN,
    Credential,
    GssError,
    Negotiation,
    ResourceManagerTokens,
    Token,
    TokenFile,
    TokenFormatError,
    WebHdfsTokens,
    negotiation,
    parse_tokens,
    resourcemanager_access,
    token_bytes,
    tokens_text,
)
from submarine_runtime.protocol import JobStore, layout
from submarine_runtime.storage import LocalStore, TokenRefresh, token_refresh
from tests.unit.runtime.test_cluster_http import Serve, always, answer, serve
from tests.waiting import until

__all__ = ["serve"]

HDFS = Token("a", b"id", b"password", HDFS_TOKEN, "127.0.0.1:8020")
RM = Token("b", b"\0rm", b"secret", RM_TOKEN, "127.0.0.1:8032")


def test_a_file_of_version_0() -> None:
    written = b"HDTS\0" + b"\1" + b"\1a" + b"\2id" + b"\x08password"
    written += b"\x15HDFS_DELEGATION_TOKEN" + b"\x0e127.0.0.1:8020" + b"\0"
    assert parse_tokens(written) == [HDFS]
    assert token_bytes([HDFS]) == written


def test_a_file_of_version_1() -> None:
    def part(number: int, data: bytes) -> bytes:
        return bytes([number << 3 | 2, len(data)]) + data

    fields = (b"id", b"password", HDFS_TOKEN.encode(), b"127.0.0.1:8020")
    token = b"".join(part(number, data) for number, data in enumerate(fields, 1))
    message = part(1, part(1, b"a") + part(2, token)) + part(2, part(1, b"key"))
    assert parse_tokens(b"HDTS\1" + bytes([len(message)]) + message) == [HDFS]


@pytest.mark.parametrize(
    "data",
    [b"", b"HDTS", b"HDTS\2", b"PK\3\4", b"HDTS\0\1\1a\2i", b"HDTS\1\x05\x0a\x7f", b"HDTS\0\1\x87"],
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(TokenFormatError):
        parse_tokens(data)


@given(st.binary(max_size=200))
def test_no_bytes_raise_another_error(data: bytes) -> None:
    for version in (b"\0", b"\1"):
        try:
            parse_tokens(b"HDTS" + version + data)
        except TokenFormatError:
            pass


@given(st.lists(st.tuples(st.text(max_size=40), st.binary(max_size=700), st.binary(max_size=20))))
def test_written_tokens_are_read(parts: list[tuple[str, bytes, bytes]]) -> None:
    tokens = [Token(alias, one, two, "kind", alias) for alias, one, two in parts]
    assert parse_tokens(token_bytes(tokens)) == tokens
    for token in tokens:
        assert Token.from_url_string(token.url_string, token.alias) == token


def test_url_strings() -> None:
    raw = b"\2id" + b"\x08password" + b"\x15HDFS_DELEGATION_TOKEN" + b"\x0e127.0.0.1:8020"
    assert HDFS.url_string == base64.urlsafe_b64encode(raw).decode().rstrip("=")
    issued = Token.from_url_string(HDFS.url_string, kind="HDFS_DELEGATION_TOKEN")
    assert (issued.alias, issued.service) == ("127.0.0.1:8020", "127.0.0.1:8020")
    with pytest.raises(TokenFormatError):
        Token.from_url_string("AAAA")


def test_the_representation_shows_no_secret() -> None:
    assert "password" not in repr(HDFS)
    assert "id" not in repr(HDFS).replace("kind", "").replace("identifier", "")


def test_a_changed_file_is_read_again_and_keeps_other_tokens(tmp_path: Path) -> None:
    path = tmp_path / "container_tokens"
    path.write_bytes(token_bytes([HDFS, RM]))
    file = TokenFile(environ={"HADOOP_TOKEN_FILE_LOCATION": str(path)})
    reader = TokenFile(str(path))
    assert reader.find(HDFS_TOKEN) == [HDFS]
    file.replace([Token("other", b"new", b"word", HDFS_TOKEN, HDFS.service)])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert reader.tokens() == [Token("a", b"new", b"word", HDFS_TOKEN, HDFS.service), RM]
    path.write_bytes(b"HDTS\0\5broken")
    assert len(reader.tokens()) == 2
    path.unlink()
    assert len(reader.tokens()) == 2
    assert TokenFile(environ={}).tokens() == []


def test_requests_with_tokens(serve: Serve, tmp_path: Path) -> None:
    heads: list[str] = []

    def reply(head: str) -> Iterator[bytes]:
        heads.append(head)
        yield answer("{}")

    path = tmp_path / "tokens"
    path.write_bytes(token_bytes([RM, HDFS]))
    file = TokenFile(str(path))
    url = serve(reply)
    for authentication in (WebHdfsTokens(file), ResourceManagerTokens(file)):
        HttpClient([url], access=Access(authentication), timeout=5.0).request("GET", "/x")
    assert f"GET /x?delegation={HDFS.url_string} HTTP/1.1" in heads[0]
    assert f"X-Hadoop-Delegation-Token: {RM.url_string}" in heads[1]
    assert RM.url_string not in heads[1].splitlines()[0]


def test_a_container_without_a_token_sends_nothing(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "tokens"
    path.write_bytes(token_bytes([HDFS]))
    heads: list[str] = []
    url = serve(lambda head: iter([heads.append(head) or b""]))
    access = Access(ResourceManagerTokens(TokenFile(str(path))))
    with pytest.raises(SignInError, match="contains no RM_DELEGATION_TOKEN"):
        HttpClient([url], access=access, timeout=5.0).request("GET", "/x")
    assert heads == []


def test_simple_authentication_in_a_container(serve: Serve) -> None:
    heads: list[str] = []

    def reply(head: str) -> Iterator[bytes]:
        heads.append(head.splitlines()[0])
        yield answer("{}")

    access = resourcemanager_access(JobStore("webhdfs", "/x", user="ada"))
    HttpClient([serve(reply)], access=access, timeout=5.0).request("GET", "/x")
    assert heads == ["GET /x?user.name=ada HTTP/1.1"]


class TestNegotiation:
    """The cookie of the first response replaces further negotiations, until it is rejected."""

    @pytest.fixture
    def negotiations(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        asked: list[str] = []

        def negotiate(host: str, credential: Credential) -> str:
            asked.append(host)
            return f"ticket{len(asked)}"

        monkeypatch.setattr(negotiation, "negotiate", negotiate)
        return asked

    def test_the_cookie_is_used(self, serve: Serve, negotiations: list[str]) -> None:
        heads: list[str] = []

        def reply(head: str) -> Iterator[bytes]:
            heads.append(head)
            cookie = (
                {}
                if "Cookie" in head
                else {"Set-Cookie": 'hadoop.auth="u=a&e=1"; Path=/; HttpOnly'}
            )
            yield answer("{}", **cookie)

        client = HttpClient(
            [serve(reply)], access=Access(Negotiation(acting_as="ada")), timeout=5.0
        )
        client.request("GET", "/x")
        client.request("GET", "/x")
        assert "Authorization: Negotiate ticket1" in heads[0]
        assert "doAs=ada" in heads[0]
        assert 'Cookie: hadoop.auth="u=a&e=1"\r' in heads[1]
        assert "Authorization" not in heads[1]
        assert negotiations == ["127.0.0.1"]

    def test_a_rejected_cookie_is_replaced_once(
        self, serve: Serve, negotiations: list[str]
    ) -> None:
        def reply(head: str) -> Iterator[bytes]:
            if "ticket1" in head or "ticket2" in head:
                yield answer("{}", **{"Set-Cookie": "hadoop.auth=old"})
            else:
                yield answer("no", "401 Unauthorized")

        client = HttpClient([serve(reply)], access=Access(Negotiation()), timeout=5.0)
        assert client.request("GET", "/x").status == 200
        assert client.request("GET", "/x").status == 200
        assert len(negotiations) == 2
        assert client.request("GET", "/x").status == 401
        assert len(negotiations) == 3
        assert client.calls == 5

    def test_no_ticket(self, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(host: str, credential: Credential) -> str:
            raise GssError("No Kerberos credentials available")

        monkeypatch.setattr(negotiation, "negotiate", refuse)
        client = HttpClient(
            [serve(lambda _: iter([b""]))], access=Access(Negotiation()), timeout=5.0
        )
        with pytest.raises(SignInError, match="No Kerberos credentials"):
            client.request("GET", "/x")


def test_without_a_ticket_the_library_says_why(tmp_path: Path) -> None:
    from submarine_runtime.kerberos import credential_state, gssapi_problem

    if gssapi_problem():
        pytest.skip(gssapi_problem())
    with pytest.raises(GssError):
        credential_state(Credential(cache=f"FILE:{tmp_path / 'none'}"))
    assert os.listdir(tmp_path) == []


class TestFreshTokens:
    """A fresh token replaces the one of YARN, which is used again when the fresh one expires."""

    @pytest.fixture
    def file(self, tmp_path: Path) -> TokenFile:
        path = tmp_path / "tokens"
        path.write_bytes(token_bytes([HDFS, RM]))
        return TokenFile(str(path))

    def test_another_name_of_the_service(self, file: TokenFile) -> None:
        file.replace([Token("", b"new", b"word", RM_TOKEN, "")])
        assert file.find(RM_TOKEN) == [Token("b", b"new", b"word", RM_TOKEN, RM.service)]
        assert TokenFile(file.path).tokens() == file.tokens()

    def test_a_rejected_token_is_replaced_by_the_first(self, file: TokenFile) -> None:
        fresh = Token("", b"new", b"word", HDFS_TOKEN, HDFS.service)
        file.replace([fresh])
        assert not file.rejected(RM)
        assert file.rejected(file.find(HDFS_TOKEN)[0])
        assert file.find(HDFS_TOKEN) == [HDFS]
        assert TokenFile(file.path).find(HDFS_TOKEN) == [HDFS]
        assert not file.rejected(HDFS)
        # A request that was sent before a replacement: the new one has not been tried.
        file.replace([fresh])
        assert file.rejected(HDFS)
        assert file.find(HDFS_TOKEN)[0].identifier == b"new"

    def test_the_name_in_the_url(self, file: TokenFile) -> None:
        file.add_host_name("nn.example:8020")
        written = parse_tokens(Path(file.path).read_bytes())
        assert [(one.kind, one.service) for one in written] == [
            (HDFS_TOKEN, HDFS.service),
            (RM_TOKEN, RM.service),
            (HDFS_TOKEN, "nn.example:8020"),
        ]
        file.replace([Token("", b"new", b"word", HDFS_TOKEN, HDFS.service)])
        written = parse_tokens(Path(file.path).read_bytes())
        assert [one.identifier for one in written if one.kind == HDFS_TOKEN] == [b"new", b"new"]
        assert len(file.find(HDFS_TOKEN)) == 1

    def test_a_file_that_cannot_be_written(
        self, file: TokenFile, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file.path = str(Path(file.path).parent / "none" / "tokens")
        with pytest.raises(OSError, match="none"):
            file.replace([HDFS])
        assert file.find(HDFS_TOKEN) == [HDFS]

    def test_requests_after_a_rejection(self, serve: Serve, file: TokenFile) -> None:
        file.replace([Token("", b"new", b"word", HDFS_TOKEN, HDFS.service)])
        tokens: list[str] = []

        def reply(head: str) -> Iterator[bytes]:
            tokens.append(head.partition("delegation=")[2].partition(" ")[0])
            if HDFS.url_string in head:
                yield answer("{}")
            else:
                yield answer("org.apache...SecretManager$InvalidToken: expired", "403 Forbidden")

        client = HttpClient([serve(reply)], access=Access(WebHdfsTokens(file)), timeout=5.0)
        assert client.request("GET", "/x").status == 200
        assert tokens[1:] == [HDFS.url_string]
        assert client.calls == 2

    def test_a_standby_rejects_no_token(self, serve: Serve, file: TokenFile) -> None:
        file.replace([Token("", b"new", b"word", HDFS_TOKEN, HDFS.service)])
        body = "SecretManager$InvalidToken: StandbyException"
        client = HttpClient(
            [serve(always(body, "403 Forbidden"))], access=Access(WebHdfsTokens(file)), timeout=5.0
        )
        assert client.request("GET", "/x").status == 403
        assert file.find(HDFS_TOKEN)[0].identifier == b"new"


def test_tokens_in_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The receiver of a job: pushed tokens, and those in the job directory."""
    path = tmp_path / "tokens"
    path.write_bytes(token_bytes([HDFS]))
    monkeypatch.setattr(token_refresh, "container_tokens", lambda: TokenFile(str(path)))
    warnings: list[str] = []
    sent: list[str] = []
    store = LocalStore(str(tmp_path))
    config = JobStore("local", "/x", authentication="token", token_interval=0.05)
    refresh = TokenRefresh(config, store, warnings.append, sent.append)
    fresh = tokens_text([Token("", b"new", b"word", HDFS_TOKEN, HDFS.service)])
    refresh.receive(fresh)
    assert parse_tokens(path.read_bytes())[0].identifier == b"new"
    assert sent == [fresh]
    with pytest.raises(ValueError, match="not a delegation token"):
        refresh.receive("AAAA")
    refresh.start()
    store.publish(layout.TOKENS, tokens_text([HDFS]).encode())
    until(lambda: parse_tokens(path.read_bytes())[0].identifier == b"id", "the file is read")
    store.publish(layout.TOKENS, b"\xff")
    until(lambda: warnings, "a warning")
    assert warnings[0] == "tokens.txt in the job directory contains no tokens."
    refresh.stop()
    simple = TokenRefresh(JobStore("local", "/x"), store, warnings.append, sent.append)
    simple.receive(fresh)
    assert len(sent) == 2
