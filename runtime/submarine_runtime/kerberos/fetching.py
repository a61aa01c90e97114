"""Obtain delegation tokens of HDFS and of the ResourceManager for a user with a ticket.

A token cannot be used to obtain another one.
"""

from __future__ import annotations

import json
from typing import Sequence

from submarine_runtime.cluster_http import Access, Answer, HttpClient, NoAnswerError
from submarine_runtime.kerberos.gssapi import Credential
from submarine_runtime.kerberos.negotiation import Negotiation
from submarine_runtime.kerberos.tokens import HDFS_TOKEN, RM_TOKEN, Token, TokenFormatError
from submarine_runtime.protocol import JobStore
from submarine_runtime.translation import _


class NoTokenError(Exception):
    """A service gave no token; the message is one sentence without a token."""


def fetch_tokens(
    namenodes: Sequence[str],
    resourcemanagers: Sequence[str],
    access: Access,
    renewer: str,
    timeout: float = 20.0,
    gateway: bool = False,
) -> list[Token]:
    """Return a token of the NameNode and one of the ResourceManager.

    Parameters
    ----------
    namenodes, resourcemanagers
        Base URLs of WebHDFS, and of the ResourceManagers.
    renewer
        User who may renew the tokens.
    timeout
        Seconds for each request.
    gateway
        Whether ``namenodes`` is an HttpFS gateway, whose own token is then returned.

    Raises
    ------
    NoTokenError
        If a service does not answer, or refuses.
    """
    query = {"op": "GETDELEGATIONTOKEN", "renewer": renewer}
    answer = _ask(namenodes, access, timeout, "GET", "/webhdfs/v1/", query)
    hdfs = _token(
        answer.json_object().get("Token"), "urlString", "" if gateway else HDFS_TOKEN, answer
    )
    path = "/ws/v1/cluster/delegation-token"
    body = json.dumps({"renewer": renewer}).encode()
    answer = _ask(resourcemanagers, access, timeout, "POST", path, {}, body)
    return [hdfs, _token(answer.json_object(), "token", RM_TOKEN, answer)]


def tokens_by_keytab(config: JobStore, resourcemanagers: Sequence[str], keytab: str) -> list[Token]:
    """Return tokens in a container with a keytab.

    Parameters
    ----------
    config
        Its ``principal`` is in the keytab.
    resourcemanagers
        Base URLs.
    keytab
        Path of the file.

    Raises
    ------
    NoTokenError
        As ``fetch_tokens``; also if this node has no Kerberos library.
    """
    cache = f"MEMORY:submarine-{config.principal}"
    access = Access(Negotiation(Credential(config.principal, keytab, cache)), config.ca)
    urls = config.webhdfs, resourcemanagers
    return fetch_tokens(*urls, access, config.user or "", gateway=config.gateway)


def _ask(
    urls: Sequence[str],
    access: Access,
    timeout: float,
    method: str,
    path: str,
    query: dict[str, str],
    body: bytes | None = None,
) -> Answer:
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    client = HttpClient(urls, access=access, timeout=timeout, standby=_standby)
    try:
        return client.request(method, path, query, body=body, headers=headers)
    except NoAnswerError as exc:
        raise NoTokenError(
            _("{place} gives no delegation token: {reason}").format(place=exc.place, reason=exc)
        ) from exc


def _standby(answer: Answer) -> str:
    """See ``HttpClient``; the standby of a pair refuses, redirects, or reports its state."""
    is_standby = b"StandbyException" in answer.body or b"standby RM" in answer.body
    return _("it is the standby") if is_standby or answer.status in (302, 307) else ""


def _token(content: object, key: str, kind: str, answer: Answer) -> Token:
    text = content.get(key) if isinstance(content, dict) else None
    try:
        return Token.from_url_string(text if isinstance(text, str) else "", kind=kind)
    except TokenFormatError as exc:
        remote = answer.json_object().get("RemoteException")
        reason = remote.get("message") if isinstance(remote, dict) else None
        raise NoTokenError(
            _("the answer contains no {kind} (status {status}): {reason}").format(
                kind=kind, status=answer.status, reason=str(reason or "")[:300]
            )
        ) from exc
