"""Values of ``${name}`` in a run, including Azkaban's names for time and execution.

Precedence as in ``azkaban.execapp.FlowRunner.prepareJobProperties``, lowest first: Azkaban's
parameters, the flow's ``config:``, ``-p``, flows that contain the node, outputs of its
dependencies, its own ``config:``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _
from submarine_workflows.local.progress import Step

_PARAMETER = re.compile(r"\$\{([a-zA-Z_.0-9]+)\}")
_MAX_DEPTH = 50
_MAX_LENGTH = 1 << 17


def flow_parameters(name: str, execution: int, start: datetime, user: str) -> dict[str, str]:
    """Return Azkaban's parameters of a run (``azkaban.flow.CommonJobProperties``).

    Parameters
    ----------
    start
        With time zone.
    """
    zone = getattr(start.tzinfo, "key", None) or start.strftime("%Z")
    offset = start.isoformat(timespec="milliseconds")
    return {
        "azkaban.flow.flowid": name,
        "azkaban.flow.execid": str(execution),
        "azkaban.flow.projectid": "0",
        "azkaban.flow.projectname": name,
        "azkaban.flow.projectversion": "1",
        "azkaban.flow.submituser": user,
        "azkaban.flow.executionsource": "adhoc",
        "azkaban.flow.start.timestamp": offset.replace("+00:00", "Z"),
        "azkaban.flow.start.year": f"{start:%Y}",
        "azkaban.flow.start.month": f"{start:%m}",
        "azkaban.flow.start.day": f"{start:%d}",
        "azkaban.flow.start.hour": f"{start:%H}",
        "azkaban.flow.start.minute": f"{start:%M}",
        "azkaban.flow.start.second": f"{start:%S}",
        "azkaban.flow.start.milliseconds": f"{start.microsecond // 1000:03d}",
        "azkaban.flow.start.timezone": zone,
    }


def properties_for(
    step: Step, common: Mapping[str, str], config: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """Return the Azkaban properties of a starting node, with unresolved parameters.

    Parameters
    ----------
    common
        Properties of the run.
    config
        Properties of the workflow.
    given
        Values of ``-p``.
    """
    found = {**common, **config, **given}
    around: list[Step] = []
    flow = step.parent
    while flow is not None and flow.parent is not None:
        around.insert(0, flow)
        flow = flow.parent
    for one in (*around, step):
        for other in one.before:
            found.update(other.outputs)
        found.update(one.node.config)
    found["azkaban.job.id"] = step.node.name
    found["azkaban.job.innodes"] = ",".join(step.node.depends_on)
    found["azkaban.job.outnodes"] = ",".join(other.node.name for other in step.after)
    if around:
        found["azkaban.flow.nested.path"] = step.path
    return found


def parameter_filler(properties: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that replaces each ``${name}``, or raises UsageError if it has no value."""
    known: dict[str, str] = {}

    def fill(text: str, seen: tuple[str, ...] = ()) -> str:
        def one(match: re.Match[str]) -> str:
            name = match.group(1)
            if name in seen or len(seen) > _MAX_DEPTH:
                circle = " -> ".join((*seen, name)[:10])
                raise UsageError(
                    _("The parameter ${{{name}}} refers to itself: {circle}.").format(
                        name=name, circle=circle
                    )
                )
            if name not in properties:
                raise UsageError(
                    _("${{{name}}} has no value.").format(name=name),
                    _("Give it with `-p {name} VALUE`, or under `config:`.").format(name=name),
                )
            if name not in known:
                known[name] = fill(properties[name], (*seen, name))
            return known[name]

        found = _PARAMETER.sub(one, text)
        if len(found) > _MAX_LENGTH:
            raise UsageError(
                _("With its parameters filled in, `{text}` is too long.").format(text=text[:60])
            )
        return found

    def whole(text: str) -> str:
        found = fill(text)
        if "$(" in found:
            raise UsageError(
                _("`{found}` contains `$(`, which starts a JEXL expression in Azkaban.").format(
                    found=found[:80]
                ),
                _("JEXL is not supported here; for $() of a shell, use a script file."),
            )
        return found

    return whole


def as_properties(values: Mapping[str, str]) -> str:
    """Return the text of a Java properties file, for ``JOB_PROP_FILE``."""
    return "".join(f"{_escaped(k, key=True)}={_escaped(v)}\n" for k, v in sorted(values.items()))


def _escaped(text: str, *, key: bool = False) -> str:
    plain = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
    found = []
    for position, char in enumerate(text):
        if char in plain:
            found.append(plain[char])
        elif (char == " " and (key or position == 0)) or (key and char in "=:#!"):
            found.append(f"\\{char}")
        elif " " <= char <= "~":
            found.append(char)
        else:
            code = char.encode("utf-16-be", "surrogatepass")
            units = [code[n : n + 2] for n in range(0, len(code), 2)]
            found += [f"\\u{unit.hex()}" for unit in units]
    return "".join(found)
