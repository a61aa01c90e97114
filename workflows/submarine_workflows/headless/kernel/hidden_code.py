"""Code that the runner executes in the kernel outside the notebook, and its results.

After the last cell, the kernel waits for the jobs of its cells (``submarine_magics.headless``),
because only the kernel knows them. Then it encodes the values of requested variables as JSON, so
that no object is unpickled here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from papermill.log import logger

from submarine_jobs.text import printable

BARRIER_TYPE = "application/vnd.submarine.barrier.v1+json"
_MAX_JOBS = 200
_MAX_THREADS = 5
#: Imports nothing, and so costs no time, in a kernel without jobs.
_ONLY_WITH_JOBS = (
    'if {{"submarine_magics", "submarine_jobs"}}.intersection(__import__("sys").modules):\n'
    '    __import__("importlib").import_module("submarine_magics.headless.barrier").{call}'
)
WAIT_FOR_JOBS = _ONLY_WITH_JOBS.format(call="wait_for_jobs()")
RETURNED_TYPE = "application/vnd.submarine.returned.v1+json"
_MAX_RETURNED_BYTES = 1 << 20
#: Values returned by a job override variables of the same cells.
_CODE = """
def _submarine_returned(names):
    import json
    from IPython.display import display
    space = get_ipython().user_ns
    found, missing, unencodable = {{}}, [], []
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
                unencodable.append(name)
    report = {{"found": found, "missing": missing, "unencodable": unencodable}}
    display({{{mime!r}: report}}, raw=True)
try:
    _submarine_returned({names!r})
finally:
    del _submarine_returned
"""


def end_jobs_code(reason: str) -> str:
    """Return the code that cancels or detaches the jobs, as configured at the kernel's start."""
    return _ONLY_WITH_JOBS.format(call=f"end_jobs({reason!r})")


@dataclass
class JobOutcomes:
    """End states of the notebook's jobs, as reported by the kernel.

    Attributes
    ----------
    failed
        One entry per failure: ``job_id cell_id execution_count ename evalue traceback``.
    detached
        Ids of jobs that continue.
    received
        Whether the kernel has reported anything.
    """

    failed: list[dict[str, Any]] = field(default_factory=list)
    detached: list[str] = field(default_factory=list)
    received: bool = False

    def add(self, data: Mapping[str, Any]) -> None:
        """Add one display of the hidden cell; invalid content is ignored."""
        content = data.get(BARRIER_TYPE)
        if not isinstance(content, dict):
            return
        threads = content.get("threads")
        if isinstance(threads, list):
            names = ", ".join(printable(str(name), 80) for name in threads[:_MAX_THREADS])
            logger.warning("Waiting for threads of the notebook that are not daemons: %s.", names)
            return
        self.received = True
        failed, detached = content.get("failed"), content.get("detached")
        for item in failed[:_MAX_JOBS] if isinstance(failed, list) else []:
            if isinstance(item, dict):
                self.failed.append(item)
        for item in detached[:_MAX_JOBS] if isinstance(detached, list) else []:
            name = item.get("job_id") if isinstance(item, dict) else item
            self.detached.append(printable(str(name), 200))


@dataclass
class ReturnedValues:
    """Values of the requested notebook variables.

    Attributes
    ----------
    values
        Plain JSON values by name.
    missing
        Names of undefined variables.
    unencodable
        Names of values that JSON cannot represent.
    """

    values: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unencodable: list[str] = field(default_factory=list)

    def add(self, data: Mapping[str, Any]) -> None:
        """Add one display of the hidden cell; invalid content is ignored."""
        content = data.get(RETURNED_TYPE)
        if not isinstance(content, dict):
            return
        found = content.get("found")
        if isinstance(found, dict) and len(json.dumps(found)) <= _MAX_RETURNED_BYTES:
            self.values.update({str(name): value for name, value in found.items()})
        for key, names in (("missing", self.missing), ("unencodable", self.unencodable)):
            names_of_key = content.get(key)
            names += [str(name) for name in names_of_key] if isinstance(names_of_key, list) else []


def return_values_code(names: Sequence[str]) -> str:
    """Return the code that displays the values of ``names``."""
    return _CODE.format(mime=RETURNED_TYPE, names=list(names))
