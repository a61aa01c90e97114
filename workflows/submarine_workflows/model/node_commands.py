"""Commands that a node runs, identical on this machine, in Azkaban, in Airflow and under cron.

``${parameters}`` are filled in by the scheduler that runs the commands.

Notes
-----
The commands of a node run in order, and the first that fails ends the node. Their environment
contains the variables of ``submarine_jobs.model.WorkflowOrigin``, the node's ``env.X`` and
``JOB_OUTPUT_PROP_FILE``, the file to which ``submarine run --return NAMES`` writes the outputs for
the conditions of the workflow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _
from submarine_workflows.locations import without_password
from submarine_workflows.model.names import file_name
from submarine_workflows.model.workflow import Kind, Need, Node, Scalar, Workflow

#: Azkaban's parameter for the execution number.
EXECUTION = "${azkaban.flow.execid}"
ENVIRONMENT = "env."
_AWAIT = ("workflow", "await")  # followed by `--timeout TIME -- URL`
_BRACES = re.compile(r"(?<!\$)\{([A-Za-z_][\w.]*)\}")
_OUTPUT = re.compile(r"\$\{([^{}:]+):([^{}]+)\}")
_NUMBER = re.compile(r"[-+]?(\d+(_\d+)*)?(\.\d*)?(e[-+]?\d+)?|[-+]?(nan|inf|infinity)", re.I)

#: Words of these characters need no quotes; ``${}`` is quoted, because its value may contain
#: spaces.
_PLAIN = re.compile(r"[^\s'\"$]+")
_RUNS = re.compile(r"'+|[^']+")


@dataclass(frozen=True)
class ExecutionSettings:
    """Settings of the scheduler and machine that run a node.

    Attributes
    ----------
    run
        Identifier of the workflow's run; a parameter that the scheduler fills in.
    outputs
        Folder or URL for the executed notebooks; empty: the working directory.
    notebook
        Notebook that contains the workflow and the cells that its nodes run.
    program
        Command that calls ``submarine``.
    on_interrupt
        Action for the jobs of a stopped node: ``cancel`` or ``detach``.
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
    settings: ExecutionSettings | None = None,
    fill: Callable[[str], str] = str,
) -> list[list[str]]:
    """Return the commands of ``node`` as lists of words; none for a flow or a noop without needs.

    Parameters
    ----------
    flows
        Flows that contain the node, outermost first, as in ``Workflow.walk``. Their needs are
        awaited by those of their nodes that have no dependencies.
    fill
        Replaces ``${name}`` by values; by default parameters are kept for the scheduler.

    Raises
    ------
    UsageError
        If only Azkaban runs nodes of this type, or the notebook of its cells is unknown.
    """
    settings = settings or ExecutionSettings()
    if node.kind is Kind.FLOW:
        return []
    found = [_await(need, settings, fill) for need in needs_of(node, flows)]
    if node.kind is Kind.COMMAND:
        # Azkaban fills in parameters before it splits the line.
        found += [
            split_command(fill(line)) for line in _lines(properties_of(workflow, node, flows))
        ]
    elif node.kind in (Kind.NOTEBOOK, Kind.CELLS):
        notebook, *words = (fill(word) for word in _run(workflow, node, flows, settings))
        found.append([*settings.program, "run", no_option(notebook), *words])
    elif node.kind is Kind.OTHER:
        raise UsageError(
            _("`{node}` has type `{type}`, which only Azkaban runs.").format(
                node=node.name, type=node.type
            ),
            _("Types that run anywhere: notebook, cells, command, noop, flow."),
        )
    return found


def needs_of(node: Node, flows: Sequence[Node] = ()) -> tuple[Need, ...]:
    """Return the data that ``node`` awaits, including that of flows that begin with the node."""
    found = [node.needs]
    for flow in [] if node.depends_on else reversed(flows):
        found.append(flow.needs)
        if flow.depends_on:
            break
    return tuple(need for needs in reversed(found) for need in needs)


def properties_of(workflow: Workflow, node: Node, flows: Sequence[Node] = ()) -> dict[str, str]:
    """Return the Azkaban properties of a node, which override those of its flows."""
    found = dict(workflow.config)
    for around in (*flows, node):
        found.update(around.config)
    return found


def environment_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that ``env.X`` properties set."""
    return {
        key.removeprefix(ENVIRONMENT): value
        for key, value in properties.items()
        if key.startswith(ENVIRONMENT)
    }


def path_of(node: Node, flows: Sequence[Node] = ()) -> str:
    """Return the node's name with those of its flows, ``inner:train``, as in Azkaban."""
    return ":".join(one.name for one in (*flows, node))


def returns_of(workflow: Workflow, node: Node, flows: Sequence[Node] = ()) -> tuple[str, ...]:
    """Return the output parameters of ``node`` that conditions of its neighbours use."""
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
    """Replace ``{date}`` by ``${date}``; existing ``${...}`` is unchanged."""
    return _BRACES.sub(r"${\1}", text)


def _await(need: Need, settings: ExecutionSettings, fill: Callable[[str], str]) -> list[str]:
    # A parameter's value may begin with a dash; after `--` it is not an option.
    url = fill(parameters_in(need.url))
    return [*settings.program, *_AWAIT, "--timeout", f"{need.timeout:.12g}s", "--", url]


def awaited_url(words: Sequence[str]) -> str:
    """Return the URL that a node's command awaits, without password; empty if it awaits none."""
    return without_password(words[-1]) if tuple(words[-6:-4]) == _AWAIT else ""


def is_notebook(words: Sequence[str]) -> bool:
    """Return whether a node's command executes a notebook."""
    return "run" in words and any(word.endswith(".ipynb") for word in words)


def _lines(properties: Mapping[str, str]) -> list[str]:
    """Return ``command``, ``command.1`` and so on, up to the first missing number."""
    lines = [properties["command"]] if "command" in properties else []
    while lines and f"command.{len(lines)}" in properties:
        lines.append(properties[f"command.{len(lines)}"])
    return lines


def _run(
    workflow: Workflow, node: Node, flows: Sequence[Node], settings: ExecutionSettings
) -> list[str]:
    """Return the words after ``run``: the notebook, then options."""
    written_in = settings.notebook or workflow.notebook
    notebook = node.notebook if node.kind is Kind.NOTEBOOK else written_in
    if not notebook:
        raise UsageError(
            _("`{node}` runs cells of the workflow's notebook, but the workflow has none.").format(
                node=node.name
            ),
            _("Give the node a `notebook:`, or name the notebook with --notebook."),
        )
    path = path_of(node, flows)
    output = f"{file_name(path)}.ipynb"
    words = [notebook, "-o", _joined(settings.outputs, output)]
    if node.kind is Kind.CELLS:
        words += ["--cells", ",".join(node.cells)]
    for name, value in node.params.items():
        words += _parameter(name, value)
    words += ["--run-id", f"{file_name(workflow.name)}/{settings.run}/{file_name(path)}"]
    words += ["--on-interrupt", settings.on_interrupt]
    for key, value in node.job.items():
        words += ["--job", f"{key}={_option(value)}"]
    returns = returns_of(workflow, node, flows)
    return [*words, "--return", ",".join(returns)] if returns else words


def no_option(path: str) -> str:
    """Return a path that is not parsed as an option."""
    return f"./{path}" if path.startswith("-") else path


def _joined(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if folder else name


def _parameter(name: str, value: Scalar) -> list[str]:
    """Return papermill's ``-r`` for text that ``-p`` would convert, else ``-p``."""
    text = str(value)
    if isinstance(value, str) and (text in ("True", "False", "None") or _NUMBER.fullmatch(text)):
        return ["-r", name, text]
    return ["-p", name, text]


def _option(value: Scalar) -> str:
    """Return the value of an option; flags are ``true`` or ``false``, as in YAML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def split_command(text: str) -> list[str]:
    """Split a command line by Azkaban's rules: no shell and no backslash escapes.

    Words are separated by spaces only. Text in ``'`` or ``"`` keeps its spaces; a quote of one kind
    is plain text between quotes of the other kind, and an unclosed quote extends to the end. An
    empty word cannot be written (``azkaban.jobExecutor.ProcessJob``, ``partitionCommandLine``).
    """
    words: list[str] = []
    word, quote = "", ""
    for char in text:
        if char == quote:
            quote = ""
        elif char in "'\"" and not quote:
            quote = char
        elif char == " " and not quote:
            words += [word] if word else []
            word = ""
        else:
            word += char
    return [*words, word] if word else words


def join_command(words: Iterable[str]) -> str:
    """Return one line that ``split_command`` splits into ``words`` again.

    Raises
    ------
    ValueError
        If a word is empty or contains a line break, which a command line cannot express.
    """
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    if not word:
        raise ValueError(_("A command for Azkaban cannot contain an empty word."))
    if "\n" in word or "\r" in word:
        raise ValueError(
            _("A command for Azkaban cannot contain a line break: {word!r}.").format(word=word[:60])
        )
    if _PLAIN.fullmatch(word):
        return word
    return "".join(f'"{part}"' if part[0] == "'" else f"'{part}'" for part in _RUNS.findall(word))
