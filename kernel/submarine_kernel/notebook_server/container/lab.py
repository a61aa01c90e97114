"""JupyterLab: its configuration, and how to ask it when it was last used."""

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
        """Its token goes into a file that only this user can read."""
        if importlib.util.find_spec("jupyterlab") is None:
            raise StartError(
                f"there is no JupyterLab for {sys.executable} in the container. Install it there "
                "(pip install jupyterlab), or choose an environment that has it with --python-env."
            )
        # Jupyter itself writes files with the token in them, one of them for everybody to read.
        self.around.closed("jupyter")
        config = {
            "IdentityProvider": {"token": self.around.token},
            "PasswordIdentityProvider": {
                "password_required": False,
                "allow_password_change": False,
            },
            "ServerApp": {
                "ip": "127.0.0.1",
                "port": self.port,
                "port_retries": 0,
                "open_browser": False,
                "root_dir": self.around.notebooks,
                # Those outside come by the door, and by the name of this host.
                "allow_remote_access": True,
                "allow_root": True,
                "quit_button": True,
            },
            "LabApp": {"news_url": None, "check_for_updates_class": _NO_NEWS},
        }
        self.around.private("jupyter/config/jupyter_server_config.json", json.dumps(config))
        return [sys.executable, "-m", "jupyterlab"]

    def variables(self) -> dict[str, str]:
        """Nothing of it goes to the home directory; settings travel with the notebooks."""
        scratch = os.path.join(self.around.root, "jupyter")
        own = os.path.join(self.around.notebooks, ".jupyter")
        return {
            "JUPYTER_CONFIG_DIR": os.path.join(scratch, "config"),
            "JUPYTER_RUNTIME_DIR": os.path.join(scratch, "runtime"),
            "JUPYTER_DATA_DIR": os.path.join(scratch, "data"),
            "JUPYTERLAB_SETTINGS_DIR": os.path.join(own, "settings"),
            "JUPYTERLAB_WORKSPACES_DIR": os.path.join(own, "workspaces"),
            "IPYTHONDIR": os.path.join(scratch, "ipython"),
        }

    def last_used(self) -> float:
        """A kernel that is busy is in use; else what kernels and terminals say."""
        newest = 0.0
        for what in ("kernels", "terminals"):
            for one in self._listed(what):
                if one.get("execution_state") == "busy":
                    return time.time()
                newest = max(newest, _seconds(one.get("last_activity")))
        return newest

    def _listed(self, what: str) -> list[dict[str, Any]]:
        headers = {"Authorization": "token " + self.around.token}
        try:
            status, body = self.get(f"/api/{what}?no_track_activity=1", headers)
            found = json.loads(body) if status == 200 else []
        except (OSError, http.client.HTTPException, ValueError):
            return []
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


_NO_NEWS = "jupyterlab.handlers.announcements.NeverCheckForUpdate"


def _seconds(stamp: Any) -> float:
    try:
        return datetime.fromisoformat(str(stamp).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0
