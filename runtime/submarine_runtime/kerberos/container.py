"""Access of a container to the cluster: its delegation tokens, or the name of its user.

A container has no ticket. NodeManager and history server accept none of its tokens.
"""

from __future__ import annotations

import functools

from submarine_runtime.cluster_http import Access, Authentication, SignInError, simple_access
from submarine_runtime.kerberos.tokens import (
    HDFS_TOKEN,
    RM_TOKEN,
    WEBHDFS_TOKENS,
    Token,
    TokenFile,
)
from submarine_runtime.protocol import JobStore
from submarine_runtime.translation import _, gettext_noop

#: ``JobStore.authentication`` on a cluster with Kerberos.
TOKEN = "token"  # noqa: S105 - the name of a method
_NO_TOKEN = gettext_noop("the container has no delegation token for it")


class WebHdfsTokens(Authentication):
    """Sign in to WebHDFS by a token of the container.

    Parameters
    ----------
    service
        Service of the token; empty, or one without a token: the first HDFS token.
    """

    def __init__(self, file: TokenFile, service: str = "") -> None:
        self._file, self._service = file, service

    def token(self) -> Token | None:
        """Return the token of the next request."""
        found = self._file.find(HDFS_TOKEN, *WEBHDFS_TOKENS)
        own = [token for token in found if token.service == self._service]
        return next(iter(own or found), None)

    def sign(self, host: str, place: str, query: dict[str, str], headers: dict[str, str]) -> None:
        """See ``Authentication.sign``."""
        token = self.token()
        if token is None:
            raise SignInError(place, _(_NO_TOKEN))
        query["delegation"] = token.url_string


class ResourceManagerTokens(Authentication):
    """Sign in to the ResourceManager by a token of the container."""

    def __init__(self, file: TokenFile) -> None:
        self._file = file

    def sign(self, host: str, place: str, query: dict[str, str], headers: dict[str, str]) -> None:
        """See ``Authentication.sign``."""
        token = next(iter(self._file.find(RM_TOKEN)), None)
        if token is None:
            raise SignInError(place, _(_NO_TOKEN))
        headers["X-Hadoop-Delegation-Token"] = token.url_string


@functools.lru_cache(maxsize=1)
def container_tokens() -> TokenFile:
    """Return the token file of this container."""
    return TokenFile()


def namenode_access(store: JobStore) -> Access:
    """Return the access to WebHDFS."""
    return _access(store, WebHdfsTokens)


def resourcemanager_access(store: JobStore) -> Access:
    """Return the access to the ResourceManager."""
    return _access(store, ResourceManagerTokens)


def _access(store: JobStore, make: type[WebHdfsTokens | ResourceManagerTokens]) -> Access:
    authentication: Authentication = simple_access(store.user).authentication
    if store.authentication == TOKEN:
        authentication = make(container_tokens())
    return Access(authentication, store.ca)
