"""Fresh delegation tokens for the running jobs of a user, obtained by the user's ticket.

The ResourceManager renews the tokens of the submission until their maximum lifetime, but not these:
each is valid for one renewal interval.
"""

from __future__ import annotations

import threading
import time

from submarine_jobs.backends.yarn.cluster.hadoop_configuration import HadoopConf
from submarine_jobs.backends.yarn.cluster.identity import Identity
from submarine_jobs.errors import ClusterError
from submarine_runtime.kerberos import (
    HDFS_TOKEN,
    RM_TOKEN,
    NoTokenError,
    Token,
    fetch_tokens,
    tokens_text,
)
from submarine_runtime.translation import _


class TokenSource:
    """The tokens of one user on one cluster; all jobs share them.

    Parameters
    ----------
    timeout
        Seconds for a request.
    """

    def __init__(self, conf: HadoopConf, identity: Identity, timeout: float) -> None:
        self._conf, self._identity, self._timeout = conf, identity, timeout
        self._lock = threading.Lock()
        self._text, self._obtained = "", float("-inf")

    def text(self) -> str:
        """Return tokens that are at most half an interval between two deliveries old.

        Raises
        ------
        ClusterError
            If a service gives none.
        """
        with self._lock:
            now = time.monotonic()
            if now - self._obtained > self._conf.token_interval / 2:
                self._text = tokens_text(self._fetch())
                self._obtained = now
            return self._text

    def _fetch(self) -> list[Token]:
        if self._identity.own_tokens:
            raise ClusterError(
                _("The running jobs get no fresh delegation tokens: this container has no ticket."),
                _("Get one with `%submarine login` (in a terminal `submarine login`)."),
            )
        if (tokens := self._identity.tokens) is not None:
            # A token cannot obtain others; the hub replaces those of the file.
            found = tokens.find(HDFS_TOKEN, RM_TOKEN)
            return list({token.kind: token for token in reversed(found)}.values())
        try:
            return fetch_tokens(
                self._conf.webhdfs,
                self._conf.resourcemanagers,
                self._identity.access,
                self._identity.user,
                self._timeout,
                bool(self._conf.gateway),
            )
        except NoTokenError as exc:
            raise ClusterError(
                _("Fresh delegation tokens for the running jobs: {reason}.").format(
                    reason=str(exc).rstrip(".")
                ),
                _("`submarine doctor` checks the ticket and the cluster."),
            ) from exc
