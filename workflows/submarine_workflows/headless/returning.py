"""Values of a notebook's variables at its end, as JSON: what conditions of a workflow look at.

The kernel makes them into JSON, so that none of its objects is ever read here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MIME_TYPE = "application/vnd.submarine.returned.v1+json"
MAX_BYTES = 1 << 20
#: What a job returned wins over what the same cells have left here.
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
    """What came back.

    Attributes
    ----------
    values
        Plain JSON values by name.
    missing
        Names that the notebook has not.
    unfit
        Names whose values cannot be JSON.
    """

    values: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unfit: list[str] = field(default_factory=list)

    def take(self, data: Mapping[str, Any]) -> None:
        """One display of the hidden cell; what makes no sense is left out: it is from a kernel."""
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
    """The code that displays the values of ``names``."""
    return _CODE.format(mime=MIME_TYPE, names=list(names))
