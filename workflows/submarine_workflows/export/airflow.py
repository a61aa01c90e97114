"""Export a workflow as an Airflow DAG file, with one BashOperator per node.

The generated file requires only Airflow 2.7 or later, or 3. Workflows that Airflow cannot express
are rejected.

Notes
-----
Azkaban's conditions become trigger rules. A condition on outputs is evaluated by ``submarine
workflow holds`` at the start of the step, which is skipped (exit code 99) if it does not hold.
Outputs are XComs: the last line that a BashOperator's command prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from submarine_jobs.errors import UsageError
from submarine_jobs.model import NODE_VARIABLE, RUN_VARIABLE, WORKFLOW_VARIABLE
from submarine_runtime.translation import _
from submarine_workflows.export.crontab import five_fields
from submarine_workflows.export.shell import expand, line_of, word_of
from submarine_workflows.model import (
    EXECUTION,
    Condition,
    ExecutionSettings,
    Kind,
    Node,
    Workflow,
    commands_of,
    environment_of,
    path_of,
    properties_of,
    read_condition,
    returns_of,
)

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
_WIDTH = 96
#: Executed notebooks of each run, in the notebooks' folder unless a URL is given.
OUTPUTS = f"runs/{EXECUTION}"
_HEAD = '''"""The workflow {name}, written by `submarine workflow export --to airflow`."""

from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

try:
    from airflow.providers.standard.operators.bash import BashOperator
    from airflow.sdk import DAG, TaskGroup
except ImportError:  # Airflow 2
    from airflow import DAG
    from airflow.operators.bash import BashOperator
    from airflow.utils.task_group import TaskGroup

ZONE = ZoneInfo({zone!r})
#: Folder of the notebooks.
PROJECT = str(Path(__file__).resolve().parent / {folder!r})
#: Parameters of the run, for the commands below.
PARAMETERS = {parameters}


#: Runs before each command. Ends the command and its processes if Airflow's process for it was
#: killed: otherwise it would continue beside the next attempt. An orphan immediately has another
#: parent. Processes that ignore SIGTERM are killed after 30 s.
WATCH = r"""
(trap "" HUP INT TERM
fields() {{ read -r line <$1 && set -- ${{line##*) }} && state=$1 parent=$2 group=$3; }}
fields /proc/$BASHPID/stat
own=$group
others() {{
  for one in /proc/[0-9]*; do
    [ $one != /proc/$BASHPID ] && fields $one/stat && [ $group = $own ] && [ $state != Z ] && return
  done
  return 1
}}
while fields /proc/$$/stat; do
  if [ $parent != $PPID ]; then
    kill -s TERM 0
    for second in {{1..30}}; do others || exit; sleep 1; done
    kill -s KILL 0
  fi
  sleep 2
done) </dev/null >/dev/null 2>&1 &
"""


class Step(BashOperator):
    """A step with a command in plain text, not an Airflow template."""

    template_fields = ("env",)
    template_ext = ()

    def execute(self, context):
        """Run the command, and end it with the task."""
        self.bash_command = WATCH + self.bash_command
        try:
            return super().execute(context)
        except KeyboardInterrupt:  # Airflow does not end the command
            self.on_kill()
            raise


def started(dag_run):
    """Return the start of this run in the time zone of the schedule."""
    return (dag_run.start_date or datetime.now(ZONE)).astimezone(ZONE)


with DAG(
    {name!r},
    schedule={schedule!r},
    start_date=datetime(2020, 1, 1, tzinfo=ZONE),
    catchup=False,
    max_active_runs=1,
    params={params},
    user_defined_macros={{"started": started}},
    default_args={{"cwd": PROJECT, "append_env": True, "skip_on_exit_code": {skip}}},
):
    steps = {{}}
'''


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
            used, variable, number = set(self._variables.values()), stem, 2
            while variable in used:
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


def checked_name(name: str) -> str:
    """Return a valid Airflow name for a DAG, group or task.

    Raises
    ------
    UsageError
        If the name is invalid.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            _("`{name}` is not a valid Airflow name.").format(name=name[:80]),
            _("Use letters, digits, _, - and dots."),
        )
    return name


class Steps:
    """Writes the steps of one workflow."""

    def __init__(
        self, workflow: Workflow, settings: ExecutionSettings, parameters: Parameters
    ) -> None:
        self._workflow, self._settings, self._parameters = workflow, settings, parameters

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
        lines += self._condition_check(condition)
        returns = returns_of(self._workflow, node, flows)
        if returns:
            lines += ['JOB_OUTPUT_PROP_FILE="$(mktemp)"', "export JOB_OUTPUT_PROP_FILE"]
            lines += ["trap 'rm -f \"$JOB_OUTPUT_PROP_FILE\"' EXIT"]
        commands = commands_of(self._workflow, node, flows, self._settings, fill)
        outputs = self._settings.outputs
        if outputs and "://" not in outputs and node.kind in (Kind.NOTEBOOK, Kind.CELLS):
            lines += [f"mkdir -p -- {word_of(fill(outputs), variable)}"]
        lines += [line_of(command, variable) for command in commands]
        if returns:
            # The last line is the XCom for later conditions.
            lines += ["tr -d '\\n' <\"$JOB_OUTPUT_PROP_FILE\""]
        return "\n".join(["set -e", *lines] if len(lines) > 1 else lines or ["true"])

    def _condition_check(self, condition: Condition) -> list[str]:
        """Return lines that skip the step if its condition on outputs does not hold."""
        if not condition.parameters:
            return []
        owners = dict.fromkeys(owner for owner, _ in condition.parameters)
        values = " ".join(
            f'--output {word_of(owner + "=", str)}"$OUTPUT_{number}"'
            for number, owner in enumerate(owners)
        )
        program = line_of(self._settings.program, str)
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
        for number, owner in enumerate(
            dict.fromkeys(name for name, _unused in condition.parameters)
        ):
            task = ".".join([*(flow.name for flow in flows), owner])
            own[f"OUTPUT_{number}"] = f"{{{{ ti.xcom_pull(task_ids={task!r}) or '' }}}}"
        entries = ", ".join(f"{key!r}: {value!r}" for key, value in own.items())
        return f"{{**PARAMETERS, {entries}}}"


def _rule(node: Node, condition: Condition) -> str:
    """Return the trigger rule that is equivalent to the condition on states."""
    text = node.condition.strip()
    named = condition.macro in text
    mixed = bool(condition.parameters) and named and re.search(r"\|\||!(?!=)", text)
    other = not condition.parameters and text not in ("", condition.macro)
    if condition.macro not in RULES or mixed or other:
        raise UsageError(
            _("Airflow cannot express the condition of `{node}`: {text}").format(
                node=node.name, text=text
            ),
            _("Use {rules}, combined with comparisons of outputs by && only.").format(
                rules=", ".join(RULES)
            ),
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


def call(name: str, arguments: Mapping[str, str], indent: int) -> str:
    """Return ``name(key=value, ...)``, one argument per line."""
    space = " " * indent
    lines = [f"{space}    {key}={value}," for key, value in arguments.items()]
    return "\n".join([f"{name}(", *lines, f"{space})"])


def block(text: str, indent: int) -> str:
    """Return a text of several lines as adjacent string literals, one per line."""
    if "\n" not in text and len(text) < _WIDTH - indent:
        return repr(text)
    space = " " * (indent + 4)
    lines = [f"{space}{line + chr(10)!r}" for line in text.split("\n")]
    return "\n".join(["(", *lines, " " * indent + ")"])


def table(values: Mapping[str, str], indent: int) -> str:
    """Return a dict of texts, one entry per line."""
    if not values:
        return "{}"
    space = " " * (indent + 4)
    lines = [f"{space}{key!r}: {value!r}," for key, value in values.items()]
    return "\n".join(["{", *lines, " " * indent + "}"])


def names(values: Sequence[str]) -> str:
    """Return a list of texts."""
    return "[" + ", ".join(repr(value) for value in values) + "]"


def dag_of(workflow: Workflow, folder: str, settings: ExecutionSettings | None = None) -> str:
    """Return the DAG file of ``workflow``.

    Parameters
    ----------
    folder
        Name of the folder with the notebooks, beside the file.
    settings
        Settings for commands; ``run`` is Airflow's run id.

    Raises
    ------
    UsageError
        If Airflow cannot express it: a schedule in seconds, a condition on states and outputs.
    """
    parameters = Parameters(workflow)
    steps = Steps(workflow, settings or ExecutionSettings(outputs=OUTPUTS), parameters)
    body = list(_level(workflow.nodes, (), steps, 4))
    head = _HEAD.format(
        name=checked_name(workflow.name),
        zone=workflow.timezone or "UTC",
        folder=folder,
        parameters=table(parameters.templates, 0),
        schedule=five_fields(workflow.schedule) if workflow.schedule else None,
        params=table(parameters.of_run, 4),
        skip=SKIP,
    )
    return head + "\n".join(body) + "\n"


def _level(
    nodes: Sequence[Node], flows: Sequence[Node], steps: Steps, indent: int
) -> Iterator[str]:
    """Yield the steps of neighbouring nodes, then their dependencies."""
    space = " " * indent
    for node in nodes:
        path = path_of(node, flows)
        if node.kind is Kind.FLOW:
            yield f"{space}with TaskGroup({checked_name(node.name)!r}) as group:"
            yield f"{space}    steps[{path!r}] = group"
            yield from _level(node.nodes, (*flows, node), steps, indent + 4)
            if node.condition:
                yield from _gate(node, flows, steps, indent + 4)
        else:
            yield f"{space}steps[{path!r}] = {steps.step(node, flows, indent)}"
    above = [flow.name for flow in flows]
    for node in nodes:
        if node.depends_on:
            before = ", ".join(f"steps[{':'.join([*above, n])!r}]" for n in node.depends_on)
            yield f"{space}[{before}] >> steps[{path_of(node, flows)!r}]"


def _gate(node: Node, flows: Sequence[Node], steps: Steps, indent: int) -> Iterator[str]:
    """Yield a first step of a flow, which is skipped with all others if the flow must not run."""
    space, path = " " * indent, path_of(node, flows)
    gate = Node(node.name, Kind.NOOP, condition=node.condition, depends_on=node.depends_on)
    yield f"{space}start = {steps.step(gate, flows, indent, 'submarine_start')}"
    for inner in node.nodes:
        if not inner.depends_on:
            yield f"{space}start >> steps[{path + ':' + inner.name!r}]"
