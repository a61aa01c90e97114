"""The extension itself: makes the core, joins the routes, starts and stops with the server.

Does not talk to a cluster before somebody asks.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from jupyter_server.extension.application import ExtensionApp
from traitlets import Unicode

from submarine_server.routes import PARTS, routes
from submarine_server.service import Core

EVENTS = Path(__file__).parent / "events"


class SubmarineServer(ExtensionApp):
    """Jobs of this server's user, by REST and one websocket a page."""

    name = "submarine_server"
    description = "Machine learning jobs on YARN, from JupyterLab"
    load_other_extensions = True

    profile = Unicode(
        "",
        help="Profile of submarine.toml that the server uses; empty: the one in force.",
    ).tag(config=True)

    def initialize_settings(self) -> None:
        """Make what the handlers share."""
        root = self.settings.get("server_root_dir")
        self.core = Core(self.profile, Path(root).expanduser() if root else None)
        self.settings["submarine_core"] = self.core
        for part in PARTS:
            importlib.import_module(part).attach(self.settings, self.core)
        server = self.serverapp
        if server is not None and server.event_logger is not None:
            for schema in sorted(EVENTS.glob("*.yaml")):
                server.event_logger.register_event_schema(schema)

    def initialize_handlers(self) -> None:
        """Join the routes of all parts."""
        self.handlers.extend(routes())

    async def stop_extension(self) -> None:
        """Stop what was started; kernels that wait for containers first: no server ends before."""
        from submarine_kernel.remote import end_starts

        await end_starts()
        await self.core.close()
