"""The views of a running task: the live view on a port, the page on YARN.

The job runs without them if they fail; a failure is an event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping

from submarine_runtime.agent.shipping import LogFiles
from submarine_runtime.protocol import AgentConfig
from submarine_runtime.record import Status
from submarine_runtime.translation import _
from submarine_runtime.yarn import reachable_host, skein_started_container

if TYPE_CHECKING:
    from submarine_runtime.port import PortRequests
    from submarine_runtime.yarn import PageThread

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
        self._requests: PortRequests | None = None
        self._page: PageThread | None = None

    def open(
        self,
        logs: LogFiles,
        on_cancel: Callable[[dict[str, str]], None],
        on_save: Callable[[str], dict[str, Any]],
        announce: Callable[[str, int], None],
        on_renew: Callable[[], None],
        on_tokens: Callable[[str], None],
        take_stacks: Callable[[], list[dict[str, Any]]],
    ) -> None:
        """Open the port, call ``announce`` to publish it, and show the job on YARN.

        Parameters
        ----------
        on_cancel, on_save, on_renew, on_tokens, take_stacks
            See ``LiveRequests``.
        announce
            Publishes host and port of the live view.
        """
        # cost: ssl: the program starts before it is loaded.
        from submarine_runtime.agent.live.server import LiveRequests
        from submarine_runtime.network import Tunnels, bind_port
        from submarine_runtime.port import PortServer

        listen = self._config.listen
        try:
            listener = bind_port(listen, ports=self._config.port_range)
            server = PortServer(listener, self._secret)
        except (OSError, ValueError) as exc:
            self._status.event("warning", _("There is no live view: {error}").format(error=exc))
        else:
            self._requests = LiveRequests(
                self._status,
                self._task,
                logs,
                Tunnels(self._scratch),
                on_cancel,
                on_save,
                on_renew,
                on_tokens,
                take_stacks,
            )
            server.set_handlers(self._requests.accept)
            server.serve_in_background()
            announce(reachable_host(listen), server.port)
        self._show_on_yarn()

    def finish_page(self) -> None:
        """Show the end on YARN's page."""
        if self._page is not None:
            self._page.finish()

    def unregister(self, succeeded: bool) -> None:
        """Let YARN's tracking URL lead to the text of the page, if this is the last action."""
        if self._page is not None:
            self._page.unregister(self._config.log_server, succeeded)

    def finish_followers(self) -> None:
        """Let followers read to the end."""
        if self._requests is not None:
            self._requests.finish(FOLLOWERS_GRACE)

    def _show_on_yarn(self) -> None:
        if not skein_started_container():
            return
        # cost: the page, which only a job on YARN has.
        from submarine_runtime.network import bind_port
        from submarine_runtime.yarn import PageThread

        status, config = self._status, self._config
        self._page = PageThread(
            lambda: status.to_json(events=False),
            lambda: status.progress,
            config.spec,
            config.store,
            lambda host: bind_port(host, ports=config.port_range),
            lambda sentence: status.event("yarn_page", sentence),
        )
        self._page.start()
