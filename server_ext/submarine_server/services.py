"""Makes the watching when the server starts, and ends it with the server."""

from __future__ import annotations

from typing import Any

from tornado.ioloop import IOLoop

from submarine_server.channel import PAGES, SERVICES, Services, close_pages
from submarine_server.displays import Displays, MetricsReaders, RunDisplays
from submarine_server.monitor import JobsWatch, teller
from submarine_server.service import Core


def attach(settings: dict[str, Any], core: Core) -> None:
    """Put the services of the channel into the settings; the first look comes a little later."""
    jobs = JobsWatch(core, teller(settings.get("event_logger")))
    settings[SERVICES] = Services(
        core, jobs, Displays(core, jobs), MetricsReaders(core, jobs), RunDisplays(core)
    )
    settings[PAGES] = set()

    async def close() -> None:
        close_pages(settings)
        await jobs.close()

    core.on_close(close)
    IOLoop.current().add_callback(jobs.start)
