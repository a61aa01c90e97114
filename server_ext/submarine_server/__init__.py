"""jupyter-server extension for JupyterLab: jobs by REST and one websocket, TensorBoard.

Importing the package loads nothing; the work is done by ``submarine_jobs``.
"""

from __future__ import annotations


def _jupyter_server_extension_points() -> list[dict[str, object]]:
    """Entry point of jupyter-server."""
    # cost: `jupyter server extension list` imports this package and needs no handlers.
    from submarine_server.extension import SubmarineServer

    return [{"module": "submarine_server", "app": SubmarineServer}]


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Entry point of JupyterLab's development tools: the built front end of a source tree."""
    return [{"src": "../../labextension/dist", "dest": "jupyter-submarine"}]
