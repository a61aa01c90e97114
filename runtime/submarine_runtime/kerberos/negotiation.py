"""Authentication of requests to the cluster by a ticket (SPNEGO), with the system's library."""

from __future__ import annotations

import threading

from submarine_runtime.cluster_http import Answer, Authentication, SignInError
from submarine_runtime.kerberos.gssapi import DEFAULT, Credential, GssError, negotiate

_COOKIE = "hadoop.auth"


class Negotiation(Authentication):
    """Sign in by a ticket; further requests to the same server carry the cookie that it returned.

    Parameters
    ----------
    acting_as
        User on whose behalf a service acts (a proxy user of Hadoop); empty: the principal itself.
    token_interval
        See ``Authentication``.
    """

    in_containers = "token"

    def __init__(
        self, credential: Credential = DEFAULT, acting_as: str = "", token_interval: float = 0.0
    ) -> None:
        self.credential, self.acting_as = credential, acting_as
        self.token_interval = token_interval
        self._lock = threading.Lock()
        self._cookies: dict[str, str] = {}

    def sign(self, host: str, place: str, query: dict[str, str], headers: dict[str, str]) -> None:
        """See ``Authentication.sign``."""
        if self.acting_as:
            query["doAs"] = self.acting_as
        with self._lock:
            cookie = self._cookies.get(place)
        if cookie:
            headers["Cookie"] = f"{_COOKIE}={cookie}"
            return
        try:
            headers["Authorization"] = "Negotiate " + negotiate(host, self.credential)
        except GssError as exc:
            raise SignInError(place, str(exc)) from exc

    def answered(self, place: str, answer: Answer) -> bool:
        """See ``Authentication.answered``: an expired cookie is replaced by a new negotiation."""
        cookie = _cookie_of(answer.headers.get("set-cookie", ""))
        with self._lock:
            if answer.status == 401:
                self._cookies.pop(place, None)
                return True
            if cookie:
                self._cookies[place] = cookie
        return False


def _cookie_of(header: str) -> str:
    """Return the value of Hadoop's cookie, with its quotes; empty if the header has none."""
    name, _equals, rest = header.partition("=")
    return rest.partition(";")[0].strip() if name.strip() == _COOKIE else ""
