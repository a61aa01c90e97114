"""Convert one node to a BashOperator: script, trigger rule, retries."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from submarine_jobs.errors import UsageError
from submarine_jobs.model import NODE_VARIABLE, RUN_VARIABLE, WORKFLOW_VARIABLE
from submarine_workflows.export.airflow_parameters import Parameters
from submarine_workflows.export.airflow_text import block, call, names
from submarine_workflows.export.shell import line_of, word_of
from submarine_workflows.model import (
    Condition,
    Kind,
    Node,
    Setting,
    Workflow,
    commands_of,
    environment_of,
    path_of,
    properties_of,
    read_condition,
    returns_of,
)

#: BashOperator's exit code for a skipped step.
SKIP = 99
RULES = {
    "all_success": "all_success",
    "all_done": "all_done",
    "all_failed": "all_failed",
    "one_success": "one_success",
    "one_failed": "one_failed",
    "one_success_all_done": "all_done_min_one_success",
}
_NAME = re.compile(r"[\w.-]{1,200}", re.ASCII)


def checked_name(name: str) -> str:
    """Return a valid Airflow name for a DAG, group or task.

    Raises
    ------
    UsageError
        If the name is invalid.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"`{name[:80]}` is not a valid Airflow name.", "Use letters, digits, _, - and dots."
        )
    return name


class Steps:
    """Writes the steps of one workflow."""

    def __init__(self, workflow: Workflow, setting: Setting, parameters: Parameters) -> None:
        self._workflow, self._setting, self._parameters = workflow, setting, parameters

    def step(self, node: Node, flows: Sequence[Node], indent: int, task: str = "") -> str:
        """Return the operator of ``node`` as an expression.

        Raises
        ------
        UsageError
            If Airflow cannot express its condition or name.
        """
        properties = properties_of(self._workflow, node, flows)
        condition = read_condition(node.condition)
        arguments = {
            "task_id": repr(task or checked_name(node.name)),
            "bash_command": block(self._script(node, flows, properties, condition), indent + 4),
            "env": self._environment(node, flows, condition),
        }
        rule = _rule(node, condition)
        if rule != "all_success":
            arguments["trigger_rule"] = repr(rule)
        arguments |= _retries(properties) | _mails(properties)
        if not returns_of(self._workflow, node, flows):
            arguments["do_xcom_push"] = "False"
        return call("Step", arguments, indent)

    def _script(
        self,
        node: Node,
        flows: Sequence[Node],
        properties: dict[str, str],
        condition: Condition,
    ) -> str:
        def fill(text: str) -> str:
            return self._parameters.fill(text, properties)

        variable = self._parameters.variable
        lines = [
            f"export {name}={word_of(fill(value), variable)}"
            for name, value in sorted(environment_of(properties).items())
            if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII)
        ]
        lines += self._judge(condition)
        returns = returns_of(self._workflow, node, flows)
        if returns:
            lines += ['JOB_OUTPUT_PROP_FILE="$(mktemp)"', "export JOB_OUTPUT_PROP_FILE"]
            lines += ["trap 'rm -f \"$JOB_OUTPUT_PROP_FILE\"' EXIT"]
        commands = commands_of(self._workflow, node, flows, self._setting, fill)
        outputs = self._setting.outputs
        if outputs and "://" not in outputs and node.kind in (Kind.NOTEBOOK, Kind.CELLS):
            lines += [f"mkdir -p -- {word_of(fill(outputs), variable)}"]
        lines += [line_of(command, variable) for command in commands]
        if returns:
            # The last line is the XCom for later conditions.
            lines += ["tr -d '\\n' <\"$JOB_OUTPUT_PROP_FILE\""]
        return "\n".join(["set -e", *lines] if len(lines) > 1 else lines or ["true"])

    def _judge(self, condition: Condition) -> list[str]:
        """Return lines that skip the step if its condition on outputs does not hold."""
        if not condition.parameters:
            return []
        owners = dict.fromkeys(owner for owner, _ in condition.parameters)
        values = " ".join(
            f'--output {word_of(owner + "=", str)}"$OUTPUT_{number}"'
            for number, owner in enumerate(owners)
        )
        program = line_of(self._setting.program, str)
        quoted = "'" + condition.text.replace("'", "'\\''") + "'"
        return [
            f"{program} workflow holds {quoted} {values} && holds=0 || holds=$?",
            f'[ "$holds" != 1 ] || exit {SKIP}',
            '[ "$holds" = 0 ] || exit "$holds"',
        ]

    def _environment(self, node: Node, flows: Sequence[Node], condition: Condition) -> str:
        own = {
            WORKFLOW_VARIABLE: self._workflow.name,
            RUN_VARIABLE: "{{ run_id }}",
            NODE_VARIABLE: path_of(node, flows),
        }
        for number, owner in enumerate(dict.fromkeys(name for name, _ in condition.parameters)):
            task = ".".join([*(flow.name for flow in flows), owner])
            own[f"OUTPUT_{number}"] = f"{{{{ ti.xcom_pull(task_ids={task!r}) or '' }}}}"
        said = ", ".join(f"{key!r}: {value!r}" for key, value in own.items())
        return f"{{**PARAMETERS, {said}}}"


def _rule(node: Node, condition: Condition) -> str:
    """Return the trigger rule that is equivalent to the condition on states."""
    text = node.condition.strip()
    named = condition.macro in text
    mixed = bool(condition.parameters) and named and re.search(r"\|\||!(?!=)", text)
    other = not condition.parameters and text not in ("", condition.macro)
    if condition.macro not in RULES or mixed or other:
        raise UsageError(
            f"Airflow cannot express the condition of `{node.name}`: {text}",
            f"Use {', '.join(RULES)}, combined with comparisons of outputs by && only.",
        )
    return RULES[condition.macro]


def _retries(properties: Mapping[str, str]) -> dict[str, str]:
    retries, pause = (properties.get(key, "").strip() for key in ("retries", "retry.backoff"))
    if not retries.isdigit() or not int(retries):
        return {}
    milliseconds = int(pause) if pause.isdigit() else 0
    return {
        "retries": str(int(retries)),
        "retry_delay": f"timedelta(milliseconds={milliseconds})",
    }


def _mails(properties: Mapping[str, str]) -> dict[str, str]:
    found = [word for word in re.split(r"[,;\s]+", properties.get("failure.emails", "")) if word]
    return {"email": names(found), "email_on_failure": "True"} if found else {}
