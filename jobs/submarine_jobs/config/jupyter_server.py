"""Find the URL of this kernel's Jupyter server for the browser of the user.

It comes from environment variables and the runtime file of the server; no request is sent. In a
terminal or a script there is none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

#: Variables with the URL; JupyterHub sets the second one since release 5.3.
VARIABLES = ("SUBMARINE_JUPYTER_URL", "JUPYTERHUB_PUBLIC_URL")


def server_url(environ: Mapping[str, str] | None = None) -> str | None:
    """Return the URL of the server, ending with ``/`` and without a token; None if not known."""
    environ = os.environ if environ is None else environ
    for name in VARIABLES:
        if url := _clean(environ.get(name, "")):
            return url
    return _clean(str(_written(environ).get("url") or ""))


def tensorboard_path(job_ids: list[str]) -> str:
    """Return the path of TensorBoard for these jobs, relative to the server URL."""
    return f"submarine/tensorboard/{','.join(job_ids)}/"


def back_links(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return links from the page of a job to its notebook; empty without a server."""
    environ = os.environ if environ is None else environ
    url = server_url(environ)
    if url is None:
        return {}
    document, root = environ.get("JPY_SESSION_NAME", ""), _written(environ).get("root_dir")
    if document.endswith(".ipynb") and isinstance(root, str) and root:
        path = os.path.relpath(os.path.realpath(document), os.path.realpath(root))
        if not path.startswith(".."):
            return {"Notebook": f"{url}lab/tree/{quote(path)}"}
    return {"JupyterLab": f"{url}lab"}


def _clean(url: str) -> str | None:
    """Return the URL up to its path; None if it is invalid."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        return None
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/"


def _written(environ: Mapping[str, str]) -> dict[str, Any]:
    """Read the runtime file of the server that started this process."""
    parent = environ.get("JPY_PARENT_PID", "")
    if not parent.isdecimal():
        return {}
    try:
        # cost: jupyter_core, which the command line alone does not install.
        from jupyter_core.paths import jupyter_runtime_dir

        path = Path(jupyter_runtime_dir()) / f"jpserver-{int(parent)}.json"
        found = json.loads(path.read_bytes())
        return found if isinstance(found, dict) else {}
    except (ImportError, OSError, ValueError):
        return {}
