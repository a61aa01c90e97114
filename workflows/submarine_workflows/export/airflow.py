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

from collections.abc import Iterator, Sequence

from submarine_workflows.export.airflow_parameters import Parameters
from submarine_workflows.export.airflow_step import SKIP, Steps, checked_name
from submarine_workflows.export.airflow_text import table
from submarine_workflows.export.crontab import five_fields
from submarine_workflows.model import EXECUTION, Kind, Node, Setting, Workflow, path_of

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
    """A step whose command is plain text, not an Airflow template."""

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


def dag_of(workflow: Workflow, folder: str, setting: Setting | None = None) -> str:
    """Return the DAG file of ``workflow``.

    Parameters
    ----------
    folder
        Name of the folder with the notebooks, beside the file.
    setting
        Properties of the place for commands; ``run`` is Airflow's run id.

    Raises
    ------
    UsageError
        If Airflow cannot express it: a schedule in seconds, a condition on states and outputs.
    """
    parameters = Parameters(workflow)
    steps = Steps(workflow, setting or Setting(outputs=OUTPUTS), parameters)
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
