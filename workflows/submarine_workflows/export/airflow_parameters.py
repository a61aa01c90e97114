"""Convert workflow parameters to shell variables of the steps, set by Airflow templates."""

from __future__ import annotations

import re
from collections.abc import Mapping

from submarine_workflows.export.shell import expand
from submarine_workflows.model import Workflow

_STARTED = "started(dag_run)"
#: Azkaban's runtime parameters as Airflow templates.
RUNTIME = {
    "azkaban.flow.execid": "{{ run_id }}",
    "azkaban.flow.flowid": "{{ dag.dag_id }}",
    "azkaban.flow.start.timestamp": f"{{{{ {_STARTED}.isoformat(timespec='milliseconds') }}}}",
    "azkaban.flow.start.year": f"{{{{ {_STARTED}.strftime('%Y') }}}}",
    "azkaban.flow.start.month": f"{{{{ {_STARTED}.strftime('%m') }}}}",
    "azkaban.flow.start.day": f"{{{{ {_STARTED}.strftime('%d') }}}}",
    "azkaban.flow.start.hour": f"{{{{ {_STARTED}.strftime('%H') }}}}",
    "azkaban.flow.start.minute": f"{{{{ {_STARTED}.strftime('%M') }}}}",
    "azkaban.flow.start.second": f"{{{{ {_STARTED}.strftime('%S') }}}}",
    "azkaban.flow.start.timezone": f"{{{{ {_STARTED}.tzname() }}}}",
}


class Parameters:
    """Parameters that the steps of one workflow use."""

    def __init__(self, workflow: Workflow) -> None:
        self._workflow = workflow
        self._variables: dict[str, str] = {}

    @property
    def of_run(self) -> dict[str, str]:
        """Parameters that a run can set, with their defaults."""
        return {key: value for key, value in self._workflow.config.items() if self._given(key)}

    @property
    def templates(self) -> dict[str, str]:
        """Variable -> Airflow template of its value."""
        return {
            variable: RUNTIME.get(name, f"{{{{ params[{name!r}] }}}}")
            for name, variable in self._variables.items()
        }

    def variable(self, name: str) -> str:
        """Return the shell variable of a parameter; each name has its own."""
        if name not in self._variables:
            stem = "P_" + re.sub(r"\W", "_", name.removeprefix("azkaban."), flags=re.ASCII).upper()
            taken, variable, number = set(self._variables.values()), stem, 2
            while variable in taken:
                variable, number = f"{stem}_{number}", number + 1
            self._variables[name] = variable
        return self._variables[name]

    def fill(self, text: str, properties: Mapping[str, str]) -> str:
        """Replace parameters set by the flow; those that a run can set remain ``${name}``."""

        def stays(name: str) -> bool:
            if name in RUNTIME:
                return True
            return self._given(name) and properties.get(name) == self._workflow.config[name]

        return expand(text, properties, stays)

    def _given(self, name: str) -> bool:
        value = self._workflow.config.get(name)
        return value is not None and "${" not in value and not name.startswith("env.")
