r"""Read Azkaban's Flow 1.0: one ``.job`` file of properties per node.

The format is Java's properties (``java.util.Properties.load``): ``key=value``, ``key: value``,
``#`` and ``!`` comments, continuation lines after a backslash, ``\uXXXX``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from submarine_runtime.translation import _
from submarine_workflows.model import Kind, Node, Problem, Workflow, WorkflowError

MAX_BYTES = 1 << 20
_KINDS = {"command": Kind.COMMAND, "noop": Kind.NOOP, "flow": Kind.FLOW}
#: Java's line ends only: a line of Azkaban must not be read as two here.
_LINE_END = re.compile(r"\r\n|\r|\n")
_SPACE = " \t\f"
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PLAIN = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(text: str) -> dict[str, tuple[str, int]]:
    """Return key -> value and the line where it begins. The last of equal keys wins, as in Java."""
    found: dict[str, tuple[str, int]] = {}
    lines = _LINE_END.split(text)
    number = 0
    while number < len(lines):
        begin, line = number + 1, lines[number].lstrip(_SPACE)
        number += 1
        if not line or line[0] in "#!":
            continue
        while _continues(line) and number < len(lines):
            line = line[:-1] + lines[number].lstrip(_SPACE)
            number += 1
        key, value = _split(line)
        if key:
            found[_plain(key)] = (_plain(value), begin)
    return found


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    at = 0
    while at < len(line) and line[at] not in "=: \t\f":
        at += 2 if line[at] == "\\" else 1
    value = line[at:].lstrip(" \t\f")
    if value[:1] in ("=", ":"):
        value = value[1:].lstrip(" \t\f")
    return line[:at], value


def _plain(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        word = match.group(1)
        if len(word) == 5:
            return chr(int(word[1:], 16))
        return _PLAIN.get(word, word)

    found = _ESCAPE.sub(one, text)
    # A surrogate pair encodes a character outside the basic plane.
    return found.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def read_jobs(files: Mapping[str, str], name: str) -> Workflow:
    """Return the workflow of ``.job`` files. ``.properties`` files beside them are its parameters.

    Parameters
    ----------
    files
        File name -> text.
    name
        Name of the workflow. Azkaban itself uses the name of the last job.

    Raises
    ------
    WorkflowError
        With every file that is not a valid node.
    """
    problems: list[Problem] = []
    nodes: list[Node] = []
    config: dict[str, str] = {}
    for file, text in sorted(files.items()):
        if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
            problems.append(
                Problem(
                    0,
                    _("The file is larger than {max_bytes} MiB.").format(max_bytes=MAX_BYTES >> 20),
                    file,
                )
            )
            continue
        found = read_properties(text)
        if file.endswith(".properties"):
            config.update({key: value for key, (value, _) in found.items()})
        elif file.endswith(".job"):
            nodes.append(_node(file, found, problems))
    if not nodes and not problems:
        problems.append(
            Problem(0, _("There is no .job file; Flow 1.0 has one for each node."), name)
        )
    if problems:
        raise WorkflowError(problems)
    return Workflow(name, tuple(nodes), config)


def _node(file: str, found: Mapping[str, tuple[str, int]], problems: list[Problem]) -> Node:
    values = {key: value for key, (value, _) in found.items()}
    kind = values.pop("type", "").strip()
    if not kind:
        problems.append(
            Problem(0, _("A job file needs a line `type=`, such as type=command."), file)
        )
    wants = values.pop("dependencies", "")
    condition = values.pop("condition", "").strip()
    depends = tuple(part.strip() for part in wants.split(",") if part.strip())
    if kind == "flow":
        problems.append(
            Problem(
                found["type"][1],
                _(
                    "Embedded flows (type=flow, flow.name=...) are not supported in job files: "
                    "put the nodes under `nodes:` of a .flow file."
                ),
                file,
            )
        )
    name = file.rsplit("/", 1)[-1].removesuffix(".job")
    # Without a line: the name of the node in a sentence identifies the file.
    return Node(
        name, _KINDS.get(kind, Kind.OTHER), kind, 0, values, depends, condition=condition
    )  # fmt: skip
