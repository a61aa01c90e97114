"""JupyterLab: configuration, and the time of its last use."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import sys
import time
from datetime import datetime
from typing import Any

from .application import Application, StartError


class Lab(Application):
    """JupyterLab of the job's own Python environment."""

    label = "JupyterLab"
    health = "/api"

    def command(self) -> list[str]:
        """Write the configuration with the token to a private file.

        Raises
        ------
        StartError
            If JupyterLab is not installed.
        """
        if importlib.util.find_spec("jupyterlab") is None:
            raise StartError(
                f"there is no JupyterLab for {sys.executable} in the container. Install it there "
                "(pip install jupyterlab), or choose an environment that has it with --python-env."
            )
        # Jupyter writes files that contain the token, one of them readable by all users.
        self.container.private_directory("jupyter")
        config = {
            "IdentityProvider": {"token": self.container.token},
            "PasswordIdentityProvider": {
                "password_required": False,
                "allow_password_change": False,
            },
            "ServerApp": {
                "ip": "127.0.0.1",
                "port": self.port,
                "port_retries": 0,
                "open_browser": False,
                "root_dir": self.container.notebooks,
                # Requests through the TLS listener have the name of this host.
                "allow_remote_access": True,
                "allow_root": True,
                "quit_button": True,
            },
            "LabApp": {"news_url": None, "check_for_updates_class": _NO_UPDATE_CHECK},
        }
        self.container.write_private(
            "jupyter/config/jupyter_server_config.json", json.dumps(config)
        )
        return [sys.executable, "-m", "jupyterlab"]

    def variables(self) -> dict[str, str]:
        """Use the scratch directory instead of the home; keep settings with the notebooks."""
        scratch = os.path.join(self.container.root, "jupyter")
        own = os.path.join(self.container.notebooks, ".jupyter")
        return {
            "JUPYTER_CONFIG_DIR": os.path.join(scratch, "config"),
            "JUPYTER_RUNTIME_DIR": os.path.join(scratch, "runtime"),
            "JUPYTER_DATA_DIR": os.path.join(scratch, "data"),
            "JUPYTERLAB_SETTINGS_DIR": os.path.join(own, "settings"),
            "JUPYTERLAB_WORKSPACES_DIR": os.path.join(own, "workspaces"),
            "IPYTHONDIR": os.path.join(scratch, "ipython"),
        }

    def last_used(self) -> float:
        """Return the last activity of kernels and terminals; now if a kernel is busy."""
        newest = 0.0
        for kind in ("kernels", "terminals"):
            for item in self._list(kind):
                if item.get("execution_state") == "busy":
                    return time.time()
                newest = max(newest, _seconds(item.get("last_activity")))
        return newest

    def _list(self, kind: str) -> list[dict[str, Any]]:
        headers = {"Authorization": "token " + self.container.token}
        try:
            status, body = self.get(f"/api/{kind}?no_track_activity=1", headers)
            found = json.loads(body) if status == 200 else []
        except (OSError, http.client.HTTPException, ValueError):
            return []
        return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


_NO_UPDATE_CHECK = "jupyterlab.handlers.announcements.NeverCheckForUpdate"


def _seconds(stamp: Any) -> float:
    try:
        return datetime.fromisoformat(str(stamp).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0
