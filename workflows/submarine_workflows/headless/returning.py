"""Values of notebook variables at the end of a run, as JSON for conditions of workflows.

The kernel encodes the values, so that no object is unpickled here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MIME_TYPE = "application/vnd.submarine.returned.v1+json"
MAX_BYTES = 1 << 20
#: Values returned by a job override variables of the same cells.
_CODE = """
def _submarine_returned(names):
    import json
    from IPython.display import display
    space = get_ipython().user_ns
    found, missing, unfit = {{}}, [], []
    result = {{}}
    if "submarine_job" in space:
        try:
            result = dict(space["submarine_job"].result)
        except Exception:
            pass
    for name in names:
        if name not in result and name not in space:
            missing.append(name)
            continue
        value = result[name] if name in result else space[name]
        if hasattr(value, "item") and getattr(value, "size", 1) == 1:
            value = value.item()
        elif hasattr(value, "tolist"):
            value = value.tolist()
        try:
            found[name] = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError):
            if isinstance(value, float):
                found[name] = str(value)
            else:
                unfit.append(name)
    display({{{mime!r}: {{"found": found, "missing": missing, "unfit": unfit}}}}, raw=True)
try:
    _submarine_returned({names!r})
finally:
    del _submarine_returned
"""


@dataclass
class Returned:
    """Returned values.

    Attributes
    ----------
    values
        Plain JSON values by name.
    missing
        Names of undefined variables.
    unfit
        Names of values that JSON cannot represent.
    """

    values: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unfit: list[str] = field(default_factory=list)

    def take(self, data: Mapping[str, Any]) -> None:
        """Add one display of the hidden cell; invalid content is ignored."""
        said = data.get(MIME_TYPE)
        if not isinstance(said, dict):
            return
        found = said.get("found")
        if isinstance(found, dict) and len(json.dumps(found)) <= MAX_BYTES:
            self.values.update({str(name): value for name, value in found.items()})
        for key, names in (("missing", self.missing), ("unfit", self.unfit)):
            told = said.get(key)
            names += [str(name) for name in told] if isinstance(told, list) else []


def ask_for(names: Sequence[str]) -> str:
    """Return the code that displays the values of ``names``."""
    return _CODE.format(mime=MIME_TYPE, names=list(names))
