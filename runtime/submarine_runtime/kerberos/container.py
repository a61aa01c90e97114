"""Access of a container to the cluster: its delegation tokens, or the name of its user.

A container has no ticket. NodeManager and history server accept none of its tokens.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from typing import Sequence

from submarine_runtime.cluster_http import (
    Access,
    Answer,
    Authentication,
    SignInError,
    simple_access,
)
from submarine_runtime.kerberos.tokens import (
    HDFS_TOKEN,
    INVALID_TOKEN,
    RM_TOKEN,
    TOKEN_FILE_VARIABLE,
    WEBHDFS_TOKENS,
    TokenFile,
    container_tokens,
)
from submarine_runtime.protocol import JobStore
from submarine_runtime.translation import _


class TokenAuthentication(Authentication):
    """Sign in by a token of the container; after its rejection by another one, if there is one.

    Parameters
    ----------
    token_interval
        See ``Authentication``; for a client that has tokens in place of a ticket.
    services
        Services of the tokens that this server accepts; if the file has none of them, the first
        token is used.
    """

    in_containers = "token"
    #: Kinds of tokens that the server accepts.
    kinds: Sequence[str] = ()

    def __init__(
        self, file: TokenFile, token_interval: float = 0.0, services: Sequence[str] = ()
    ) -> None:
        self._file, self._services = file, services
        self._sent = threading.local()
        self.token_interval = token_interval

    @abstractmethod
    def add(self, text: str, query: dict[str, str], headers: dict[str, str]) -> None:
        """Add a token to a request."""

    def sign(self, host: str, place: str, query: dict[str, str], headers: dict[str, str]) -> None:
        """See ``Authentication.sign``."""
        found = self._file.find(*self.kinds)
        if not found:
            raise SignInError(
                place,
                _("{file} contains no {kind}").format(
                    file=self._file.path or TOKEN_FILE_VARIABLE, kind=self.kinds[0]
                ),
            )
        token = next((one for one in found if one.service in self._services), found[0])
        self._sent.token = token
        self.add(token.url_string, query, headers)

    def answered(self, place: str, answer: Answer) -> bool:
        """See ``Authentication.answered``."""
        # A standby NameNode reports InvalidToken too, and names its state.
        invalid = INVALID_TOKEN.encode() in answer.body and b"StandbyException" not in answer.body
        if answer.status not in (401, 403) or not invalid:
            return False
        return self._file.rejected(self._sent.token)


class WebHdfsTokens(TokenAuthentication):
    """Sign in to WebHDFS."""

    kinds: Sequence[str] = (HDFS_TOKEN, *WEBHDFS_TOKENS)

    def add(self, text: str, query: dict[str, str], headers: dict[str, str]) -> None:
        """See ``TokenAuthentication.add``; WebHDFS accepts no header."""
        query["delegation"] = text


class GatewayTokens(WebHdfsTokens):
    """Sign in to an HttpFS gateway, which does not accept the tokens of the NameNode."""

    kinds = sorted(WEBHDFS_TOKENS)


class ResourceManagerTokens(TokenAuthentication):
    """Sign in to the ResourceManager."""

    kinds = (RM_TOKEN,)

    def add(self, text: str, query: dict[str, str], headers: dict[str, str]) -> None:
        """See ``TokenAuthentication.add``."""
        headers["X-Hadoop-Delegation-Token"] = text


def namenode_access(store: JobStore) -> Access:
    """Return the access to WebHDFS."""
    return _access(store, GatewayTokens if store.gateway else WebHdfsTokens)


def resourcemanager_access(store: JobStore) -> Access:
    """Return the access to the ResourceManager."""
    return _access(store, ResourceManagerTokens)


def _access(store: JobStore, make: type[WebHdfsTokens | ResourceManagerTokens]) -> Access:
    authentication: Authentication = simple_access(store.user).authentication
    if store.uses_tokens:
        authentication = make(container_tokens())
    return Access(authentication, store.ca)
