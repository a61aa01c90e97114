"""Node labels, given over the ResourceManager's REST interface as an administrator would.

Nothing is asked where a cluster has no labels, so an ordinary start costs no time.
"""

from __future__ import annotations

import getpass
import json
from urllib.parse import quote, urlencode

from submarine_minicluster.hadoop import rest
from submarine_minicluster.settings import Saved


def give(rm: str, saved: Saved) -> None:
    """Make the labels of `saved` known and give them to their nodes; may be repeated.

    Raises
    ------
    RestError
        When the ResourceManager refuses.
    """
    pairs = saved.settings.node_labels
    if not pairs:
        return
    labels = [{"name": name, "exclusivity": "false"} for name in sorted({n for n, _ in pairs})]
    _post(f"{rm}/ws/v1/cluster/add-node-labels", {"nodeLabelInfo": labels}, {})
    nodes = rest.get(f"{rm}/ws/v1/cluster/nodes")["nodes"]["node"]
    for name, index in pairs:
        port = f":{saved.ports[f'nodemanager-{index}']}"
        node = next(entry["id"] for entry in nodes if entry["id"].endswith(port))
        _post(f"{rm}/ws/v1/cluster/nodes/{quote(node)}/replace-labels", {}, {"labels": name})


def _post(url: str, body: dict[str, object], query: dict[str, str]) -> None:
    asked = urlencode({"user.name": getpass.getuser(), **query})
    status, answer, _ = rest.request("POST", f"{url}?{asked}", body=json.dumps(body).encode())
    if status >= 300:
        raise rest.RestError(f"{url}: HTTP {status}: {answer[:500].decode(errors='replace')}")
