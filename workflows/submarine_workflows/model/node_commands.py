"""What a node runs, as commands: the same words here, in Azkaban, in Airflow and under cron.

Does not run them and does not fill in ``${parameters}`` itself: who runs them says how.

Notes
-----
The commands of a node run one after the other, and the first that fails ends it. They want in their
environment what ``submarine_jobs.model.workflow_origin.Origin`` says, the node's ``env.X`` and
``JOB_OUTPUT_PROP_FILE``, where ``submarine run --return NAMES`` writes the outputs that conditions
of the workflow look at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from submarine_jobs.errors import UsageError
from submarine_workflows.locations import without_password
from submarine_workflows.model.command_line import split_command
from submarine_workflows.model.names import file_name
from submarine_workflows.model.workflow import Kind, Need, Node, Scalar, Workflow

#: The execution's number in Azkaban's own words.
EXECUTION = "${azkaban.flow.execid}"
ENVIRONMENT = "env."
_AWAIT = ("workflow", "await")  # followed by `--timeout TIME -- URL`
_BRACES = re.compile(r"(?<!\$)\{([A-Za-z_][\w.]*)\}")
_OUTPUT = re.compile(r"\$\{([^{}:]+):([^{}]+)\}")
_NUMBER = re.compile(r"[-+]?(\d+(_\d+)*)?(\.\d*)?(e[-+]?\d+)?|[-+]?(nan|inf|infinity)", re.I)


@dataclass(frozen=True)
class Setting:
    """What differs between the places where a node may run.

    Attributes
    ----------
    run
        What tells one run of the workflow from another; a parameter that the place fills in.
    outputs
        Folder or URL where the executed notebooks go; empty: the folder that it runs in.
    notebook
        The notebook that the workflow was written in, whose cells its nodes may run.
    program
        How ``submarine`` is called there.
    on_interrupt
        What becomes of a node's jobs when the node is stopped: ``cancel`` or ``detach``.
    """

    run: str = EXECUTION
    outputs: str = ""
    notebook: str = ""
    program: tuple[str, ...] = ("submarine",)
    on_interrupt: str = "cancel"


def commands_of(
    workflow: Workflow,
    node: Node,
    flows: Sequence[Node] = (),
    setting: Setting | None = None,
    fill: Callable[[str], str] = str,
) -> list[list[str]]:
    """The commands of ``node``, each as words; none for a flow, and for a noop without needs.

    Parameters
    ----------
    flows
        Flows that it is embedded in, outermost first, as ``Workflow.walk`` gives them. What such
        a flow needs is waited for by those of its nodes that depend on nothing.
    fill
        Puts values in the place of ``${name}``; by default they stay for the place that runs it.

    Raises
    ------
    UsageError
        If its type is one that Azkaban alone runs, or its cells are of no notebook.
    """
    where = setting or Setting()
    if node.kind is Kind.FLOW:
        return []
    found = [_await(need, where, fill) for need in needs_of(node, flows)]
    if node.kind is Kind.COMMAND:
        # Azkaban fills in parameters first and takes the line apart then.
        found += [
            split_command(fill(line)) for line in _lines(properties_of(workflow, node, flows))
        ]
    elif node.kind in (Kind.NOTEBOOK, Kind.CELLS):
        notebook, *words = (fill(word) for word in _run(workflow, node, flows, where))
        found.append([*where.program, "run", no_option(notebook), *words])
    elif node.kind is Kind.OTHER:
        raise UsageError(
            f"`{node.name}` is of type `{node.type}`, which Azkaban alone runs.",
            "Types that run anywhere: notebook, cells, command, noop, flow.",
        )
    return found


def needs_of(node: Node, flows: Sequence[Node] = ()) -> tuple[Need, ...]:
    """The data that ``node`` waits for, with that of the flows that it is the beginning of."""
    found = [node.needs]
    for flow in [] if node.depends_on else reversed(flows):
        found.append(flow.needs)
        if flow.depends_on:
            break
    return tuple(need for needs in reversed(found) for need in needs)


def properties_of(workflow: Workflow, node: Node, flows: Sequence[Node] = ()) -> dict[str, str]:
    """Azkaban's properties of a node: its own over those of the flows around it."""
    found = dict(workflow.config)
    for around in (*flows, node):
        found.update(around.config)
    return found


def environment_of(properties: Mapping[str, str]) -> dict[str, str]:
    """The variables that ``env.X`` properties set."""
    return {
        key.removeprefix(ENVIRONMENT): value
        for key, value in properties.items()
        if key.startswith(ENVIRONMENT)
    }


def path_of(node: Node, flows: Sequence[Node] = ()) -> str:
    """Its name with those of the flows around it, ``inner:train``, as Azkaban has them."""
    return ":".join(one.name for one in (*flows, node))


def returns_of(workflow: Workflow, node: Node, flows: Sequence[Node] = ()) -> tuple[str, ...]:
    """The output parameters of ``node`` that conditions of its neighbours look at."""
    level = flows[-1].nodes if flows else workflow.nodes
    found = {
        name: None
        for other in level
        if f"${{{node.name}:" in other.condition
        for owner, name in _OUTPUT.findall(other.condition)
        if owner == node.name
    }
    return tuple(found)


def parameters_in(text: str) -> str:
    """``{date}`` as ``${date}``; what is in that form already stays."""
    return _BRACES.sub(r"${\1}", text)


def _await(need: Need, where: Setting, fill: Callable[[str], str]) -> list[str]:
    # The value of a parameter may begin with a dash: after `--` it is no option.
    url = fill(parameters_in(need.url))
    return [*where.program, *_AWAIT, "--timeout", f"{need.timeout:.12g}s", "--", url]


def data_waited_for(words: Sequence[str]) -> str:
    """The data that a command of a node waits for, without a password; empty: it does not."""
    return without_password(words[-1]) if tuple(words[-6:-4]) == _AWAIT else ""


def is_notebook(words: Sequence[str]) -> bool:
    """Whether a command of a node executes a notebook."""
    return "run" in words and any(word.endswith(".ipynb") for word in words)


def _lines(properties: Mapping[str, str]) -> list[str]:
    """``command``, ``command.1`` and so on, up to the first number that is not there."""
    lines = [properties["command"]] if "command" in properties else []
    while lines and f"command.{len(lines)}" in properties:
        lines.append(properties[f"command.{len(lines)}"])
    return lines


def _run(workflow: Workflow, node: Node, flows: Sequence[Node], where: Setting) -> list[str]:
    """The words after ``run``: the notebook, then options."""
    written_in = where.notebook or workflow.notebook
    notebook = node.notebook if node.kind is Kind.NOTEBOOK else written_in
    if not notebook:
        raise UsageError(
            f"`{node.name}` runs cells of the notebook that the workflow is written in, and it is "
            "written in none.",
            "Give the node a `notebook:`, or name the notebook with --notebook.",
        )
    path = path_of(node, flows)
    output = f"{file_name(path)}.ipynb"
    words = [notebook, "-o", _joined(where.outputs, output)]
    if node.kind is Kind.CELLS:
        words += ["--cells", ",".join(node.cells)]
    for name, value in node.params.items():
        words += _parameter(name, value)
    words += ["--run-id", f"{file_name(workflow.name)}/{where.run}/{file_name(path)}"]
    words += ["--on-interrupt", where.on_interrupt]
    for key, value in node.job.items():
        words += ["--job", f"{key}={_option(value)}"]
    returns = returns_of(workflow, node, flows)
    return [*words, "--return", ",".join(returns)] if returns else words


def no_option(path: str) -> str:
    """A path that no command takes for one of its options."""
    return f"./{path}" if path.startswith("-") else path


def _joined(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if folder else name


def _parameter(name: str, value: Scalar) -> list[str]:
    """``-r`` for text that ``-p`` would take for something else: papermill's two options."""
    text = str(value)
    if isinstance(value, str) and (text in ("True", "False", "None") or _NUMBER.fullmatch(text)):
        return ["-r", name, text]
    return ["-p", name, text]


def _option(value: Scalar) -> str:
    """The value of an option: flags are ``true`` or ``false``, as in YAML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
