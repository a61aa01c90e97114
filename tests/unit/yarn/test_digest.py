"""SASL DIGEST-MD5: the response, and protected messages, compared with their definition."""

from __future__ import annotations

import hashlib
import hmac
from itertools import islice

import pytest

from submarine_runtime.yarn import DigestClient, digest
from submarine_runtime.yarn.digest import UnsupportedError

USER, PASSWORD = "aWRlbnRpZmllcg==", "cGFzc3dvcmQ="
_CHALLENGE = 'realm="default",nonce="abc+/=",qop="{qop}",charset=utf-8,algorithm=md5-sess{more}'
_MAGIC = b"Digest session key to %b signing key magic constant"


def client(qop: str, more: str = "") -> DigestClient:
    challenge = _CHALLENGE.format(qop=qop, more=more)
    return DigestClient(USER, PASSWORD, challenge, "/default", "0123")


def session_key() -> bytes:
    secret = hashlib.md5(b"aWRlbnRpZmllcg==:default:cGFzc3dvcmQ=").digest()
    return hashlib.md5(secret + b":abc+/=:0123").digest()


def test_the_response_is_that_of_the_standard_s_example() -> None:
    """RFC 2831, section 4, which has a server for mail."""
    challenge = 'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess'
    words = (challenge, "imap/elwood.innosoft.com", "OA6MHXh6VqTrRk")
    response = DigestClient("chris", "secret", *words).response
    assert "response=d388dad90d4bbd760a152321f2143af7," in response


def test_the_response_names_user_nonces_and_address() -> None:
    made = client("auth")
    assert not made.protects
    assert 'username="aWRlbnRpZmllcg=="' in made.response
    assert 'realm="default",nonce="abc+/=",nc=00000001,cnonce="0123"' in made.response
    assert 'digest-uri="/default"' in made.response
    assert "response=07df1c0dc22da27270ea4f0b7a19f71d," in made.response


@pytest.mark.parametrize(
    ("qop", "more", "chosen"),
    [
        ("auth,auth-int,auth-conf", ',cipher="3des,rc4"', "qop=auth"),
        ("auth-int,auth-conf", ',cipher="3des,rc4"', "qop=auth-int"),
        ("auth-conf", ',cipher="3des,rc4"', "qop=auth-conf,cipher=rc4"),
    ],
)
def test_the_least_protection_that_is_offered_is_chosen(qop: str, more: str, chosen: str) -> None:
    assert client(qop, more).response.endswith(chosen)


@pytest.mark.parametrize(("qop", "more"), [("auth-conf", ""), ("auth-conf", ',cipher="3des"')])
def test_another_protection_is_refused(qop: str, more: str) -> None:
    with pytest.raises(UnsupportedError, match="requires another protection of calls"):
        client(qop, more)


def test_integrity_adds_a_signature_and_a_number() -> None:
    made = client("auth-int")
    assert made.protects
    key = hashlib.md5(session_key() + _MAGIC % b"client-to-server").digest()
    for number, message in enumerate((b"first", b"second")):
        count = number.to_bytes(4, "big")
        signature = hmac.new(key, count + message, hashlib.md5).digest()[:10]
        assert made.wrap(message) == message + signature + b"\0\1" + count


def test_messages_of_the_server_are_verified() -> None:
    made = client("auth-int")
    key = hashlib.md5(session_key() + _MAGIC % b"server-to-client").digest()
    signature = hmac.new(key, b"\0\0\0\0answer", hashlib.md5).digest()[:10]
    sent = b"answer" + signature + b"\0\1\0\0\0\0"
    assert made.unwrap(sent) == b"answer"
    with pytest.raises(ValueError, match="wrong signature"):
        made.unwrap(sent)  # The same message again.
    for changed in (b"answers" + sent[7:], sent[:-1] + b"\1", b""):
        with pytest.raises(ValueError, match="wrong signature"):
            client("auth-int").unwrap(changed)


def test_the_key_stream_is_that_of_rc4() -> None:
    stream = bytes(islice(digest._rc4(b"Key"), 9))
    assert bytes(a ^ b for a, b in zip(b"Plaintext", stream, strict=True)).hex() == (
        "bbf316e8d940af0ad3"
    )


def test_privacy_encrypts_message_and_signature() -> None:
    made, plain = client("auth-conf", ',cipher="rc4"'), client("auth-int")
    magic = b"Digest H(A1) to client-to-server sealing key magic constant"
    stream = digest._rc4(hashlib.md5(session_key() + magic).digest())
    for message in (b"first", b"second"):
        expected = plain.wrap(message)
        opened = made.wrap(message)
        assert opened[-6:] == expected[-6:]
        assert bytes(a ^ next(stream) for a in opened[:-6]) == expected[:-6]
