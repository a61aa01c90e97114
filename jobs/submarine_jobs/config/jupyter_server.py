"""Where the Jupyter server of this kernel is, as its user's browser finds it.

Only what the server or the hub has written down for this process; it is asked nothing. None in a
terminal, a script, a kernel of somebody else's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

#: Where the user says it himself; of a hub, from its release 5.3 on.
VARIABLES = ("SUBMARINE_JUPYTER_URL", "JUPYTERHUB_PUBLIC_URL")


def server_url(environ: Mapping[str, str] | None = None) -> str | None:
    """The server's URL, ending with ``/`` and without any token; None where it is not known."""
    environ = os.environ if environ is None else environ
    for name in VARIABLES:
        if url := _clean(environ.get(name, "")):
            return url
    return _clean(str(_written(environ).get("url") or ""))


def tensorboard_path(job_ids: list[str]) -> str:
    """Where TensorBoard of these jobs is below the server's URL."""
    return f"submarine/tensorboard/{','.join(job_ids)}/"


def back_links(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Links from a job's page to the notebook that launched it; empty where there is no server."""
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
    """The URL up to its path; None for what is none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        return None
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/"


def _written(environ: Mapping[str, str]) -> dict[str, Any]:
    """What the server that started this process has written about itself."""
    parent = environ.get("JPY_PARENT_PID", "")
    if not parent.isdecimal():
        return {}
    try:
        from jupyter_core.paths import jupyter_runtime_dir

        path = Path(jupyter_runtime_dir()) / f"jpserver-{int(parent)}.json"
        found = json.loads(path.read_bytes())
        return found if isinstance(found, dict) else {}
    except (ImportError, OSError, ValueError):
        return {}
