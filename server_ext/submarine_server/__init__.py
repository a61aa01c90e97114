"""The jupyter-server extension: jobs by REST and one websocket, TensorBoard, for JupyterLab.

Imports nothing until a server loads it; the core (``submarine_jobs``) does the work.
"""

from __future__ import annotations

#: Version of the JSON and of the websocket's messages.
API = 1


def version() -> str:
    """The version of the wheel."""
    from importlib.metadata import PackageNotFoundError, version as installed

    try:
        return installed("jupyter-submarine")
    except PackageNotFoundError:
        return "0"


def _jupyter_server_extension_points() -> list[dict[str, object]]:
    """Where jupyter-server finds the extension."""
    from submarine_server.extension import SubmarineServer

    return [{"module": "submarine_server", "app": SubmarineServer}]


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Where JupyterLab's tools find the built front end of a source tree."""
    return [{"src": "../../labextension/dist", "dest": "jupyter-submarine"}]
