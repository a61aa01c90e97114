"""The jupyter-server extension: settings, services, routes, start and stop.

No cluster is contacted before the first request.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_server.extension.application import ExtensionApp
from traitlets import Unicode

from submarine_server.version import API

if TYPE_CHECKING:
    pass

EVENT_SCHEMAS = Path(__file__).parent / "events"
#: Path of the REST interface below the server's base URL; ``API`` is the version of the JSON.
BASE = f"submarine/api/v{API}"


class SubmarineServer(ExtensionApp):
    """Jobs of the server's user by REST and one websocket per page."""

    name = "submarine_server"
    description = "Machine learning jobs on YARN, from JupyterLab"
    load_other_extensions = True

    profile = Unicode(
        "",
        help="Profile of submarine.toml that the server uses; empty: the one in force.",
    ).tag(config=True)

    def initialize_settings(self) -> None:
        """Create the objects that the handlers share."""
        # cost: `jupyter server extension list` imports this module and needs none of these.
        from submarine_server import channel, handlers, tensorboard
        from submarine_server.service import JobService

        root = self.settings.get("server_root_dir")
        self.service = JobService(self.profile, Path(root).expanduser() if root else None)
        self.settings["submarine_service"] = self.service
        handlers.attach(self.settings, self.service)
        channel.attach(self.settings, self.service)
        tensorboard.attach(self.settings, self.service)
        server = self.serverapp
        if server is not None and server.event_logger is not None:
            for schema in sorted(EVENT_SCHEMAS.glob("*.yaml")):
                server.event_logger.register_event_schema(schema)

    def initialize_handlers(self) -> None:
        """Register the routes."""
        self.handlers.extend(routes())

    async def stop_extension(self) -> None:
        """Stop the services.

        Starting kernels are stopped first: the server waits for them.
        """
        # cost: `jupyter server extension list` imports this module and needs none of these.
        from submarine_kernel.remote import end_starts

        await end_starts()
        await self.service.close()


def routes() -> list[tuple[Any, ...]]:
    """Return all routes below the server's base URL, the catch-all last.

    All handlers below ``BASE`` must be guarded; ``scripts/check_handlers.py`` checks it.
    """
    # cost: `jupyter server extension list` imports this module and needs none of these.
    from submarine_server import channel, handlers, tensorboard

    found: list[tuple[Any, ...]] = [
        (rf"/{BASE}/{pattern}", handler) for pattern, handler in [*handlers.ROUTES, *channel.ROUTES]
    ]
    found += tensorboard.ROUTES
    found.append((rf"/{BASE}(?:/.*)?", handlers.NotFoundHandler))
    return found
