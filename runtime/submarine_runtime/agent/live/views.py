"""The views of a running task: the live view on a port, the page on YARN.

The job runs without them if they fail; a failure is an event.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Mapping

from submarine_runtime.agent.shipping import LogFiles
from submarine_runtime.protocol import AgentConfig
from submarine_runtime.record import Status
from submarine_runtime.translation import _
from submarine_runtime.yarn import reachable_host

if TYPE_CHECKING:
    from submarine_runtime.agent.live.server import LiveServer
    from submarine_runtime.agent.live.yarn_page import YarnPage

#: Seconds that followers have to read to the end.
FOLLOWERS_GRACE = 3.0


class LiveViews:
    """The views of one task; ``open`` is called after its program has started."""

    def __init__(
        self,
        config: AgentConfig,
        secret: Mapping[str, str],
        status: Status,
        task: str,
        scratch: str,
    ) -> None:
        self._config = config
        self._secret = secret
        self._status = status
        self._task = task
        self._scratch = scratch
        self._server: LiveServer | None = None
        self._page: YarnPage | None = None

    def open(
        self,
        logs: LogFiles,
        on_cancel: Callable[[dict[str, str]], None],
        on_save: Callable[[str], dict[str, Any]],
        announce: Callable[[str, int], None],
        on_renew: Callable[[], None],
    ) -> None:
        """Open the port, call ``announce`` to publish it, and show the job on YARN.

        Parameters
        ----------
        on_cancel, on_save, on_renew
            See ``LiveServer``.
        announce
            Publishes host and port of the live view.
        """
        self._serve(logs, on_cancel, on_save, announce, on_renew)
        self._show_on_yarn()

    def finish_page(self) -> None:
        """Show the end on YARN's page."""
        if self._page is not None:
            self._page.finish()

    def finish_followers(self) -> None:
        """Let followers read to the end."""
        if self._server is not None:
            self._server.finish(FOLLOWERS_GRACE)

    def _serve(
        self,
        logs: LogFiles,
        on_cancel: Callable[[dict[str, str]], None],
        on_save: Callable[[str], dict[str, Any]],
        announce: Callable[[str, int], None],
        on_renew: Callable[[], None],
    ) -> None:
        # cost: http.server and ssl: the program starts before they are loaded.
        from submarine_runtime.agent.live.server import LiveServer
        from submarine_runtime.network import Tunnels

        listen = self._config.listen
        try:
            self._server = LiveServer(
                listen,
                self._secret,
                self._status,
                self._task,
                logs,
                on_cancel,
                on_save,
                Tunnels(self._scratch),
                on_renew,
            )
        except (OSError, ValueError) as exc:
            self._status.event("warning", _("There is no live view: {error}").format(error=exc))
            return
        self._server.start()
        announce(reachable_host(listen), self._server.port)

    def _show_on_yarn(self) -> None:
        if not os.environ.get("SKEIN_APPMASTER_ADDRESS"):
            return
        # cost: skein and its page, which only the container of the master has.
        from submarine_runtime.agent.live.yarn_page import page_of

        job = {"job_id": self._config.record.job_id, "name": self._config.record.name}
        self._page = page_of(self._status, job)
        if self._page is not None:
            self._page.start()
