"""Any text stays a value: one property for each place that text goes to.

Each test reads what was written by the rules of the reader (a shell, cron, Azkaban, a YAML parser)
and expects the value as it was, or a refusal before anything was written.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submarine_jobs.errors import UsageError
from submarine_workflows.azkaban.compiling import compile_workflow
from submarine_workflows.azkaban.word_values import with_values
from submarine_workflows.export.crontab import crontab_of
from submarine_workflows.node_commands import Setting
from submarine_workflows.reading import read_workflow
from submarine_workflows.validation import check
from submarine_workflows.workflow import Workflow
from tests.azkaban.executor import partition, resolve
from tests.azkaban.project import Node, load_project

#: Enough to find what these characters break; the whole module takes some seconds.
QUICK = settings(max_examples=80, deadline=None, derandomize=True)
#: Characters that mean something to one of the readers come often.
ANY = st.text(
    st.one_of(
        st.sampled_from("'\"\\ \n\r\t$%`{}@#;&|<>-=:!*?~[]()\x1b\x85\u2028é"),
        st.characters(codec="utf-8"),
    )
)
LINE = ANY.map(lambda text: "".join(c for c in text if c.isprintable()))


def without(strategy: st.SearchStrategy[str], *parts: str) -> st.SearchStrategy[str]:
    return strategy.filter(lambda text: not any(part in text for part in parts))


FLOW = """
config: {date: "2026-11-23", where: /data}
nodes:
  - name: fit
    notebook: fit.ipynb
    params: {date: "${date}", fixed: "", empty: ""}
    job: {queue: "${queue}", args: "--day ${date}"}
    needs: ${where}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("flow")
    (made / "fit.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4}')
    return made


def node_in_azkaban(folder: Path, flow: str, fixed: str = "") -> tuple[dict[str, str], Node]:
    """Flow parameters and the node, as Azkaban's web server reads them from the zip."""
    workflow = read_workflow(flow, "nightly")
    node = replace(workflow.nodes[0], params={**workflow.nodes[0].params, "fixed": fixed})
    workflow = replace(workflow, nodes=(node,))
    made = compile_workflow(workflow, folder, Setting(outputs="out"))
    loaded = load_project(made.to_zip())["nightly"]
    return loaded.config, loaded.nodes[0]


def words_of(flow: dict[str, str], node: Node, given: dict[str, str]) -> list[list[str]]:
    """The words that the programs of a node see, run with these parameters in Azkaban."""
    props = resolve(
        {"azkaban.flow.execid": "7", "azkaban.flow.flowid": "nightly",
         "azkaban.flow.projectname": "p", **flow, **given, **node.config}
    )  # fmt: skip
    environ = {key[4:]: value for key, value in props.items() if key.startswith("env.")}
    commands = [key for key in props if re.fullmatch(r"command(\.\d+)?", key)]
    found = []
    for key in sorted(commands):
        words = partition(props[key])
        assert words[:3] == ["submarine", "workflow", "with-values"]
        found.append(with_values(words[3:], environ))
    return found


@QUICK
@given(without(ANY, "${", "$("), without(ANY, "${", "$("), without(ANY, "${", "$("))
def test_a_parameter_of_azkabans_page_is_one_value(
    folder: Path, date: str, queue: str, where: str
) -> None:
    flow, node = node_in_azkaban(folder, FLOW)
    wait, run = words_of(flow, node, {"date": date, "queue": queue, "where": where})
    assert wait == ["workflow", "await", "--timeout", "21600s", "--", where]
    assert run == [
        "run", "fit.ipynb", "-o", "out/fit.ipynb", "-p", "date", date, "-r", "fixed", "",
        "-r", "empty", "", "--run-id", "nightly/7/fit", "--on-interrupt", "cancel",
        "--job", f"queue={queue}", "--job", f"args=--day {date}",
    ]  # fmt: skip


@QUICK
@given(without(ANY, "${", "$("))
def test_a_value_of_a_workflow_reaches_azkabans_program(folder: Path, value: str) -> None:
    flow, node = node_in_azkaban(folder, FLOW, value)
    _, run = words_of(flow, node, {"queue": ""})
    assert run[run.index("fixed") + 1] == value


def cron_command(line: str, *, debian: bool) -> str:
    """What cron gives to the shell: the text up to a percent sign, without backslashes before it.

    Debian's cron removes a backslash before a backslash too, cronie does not (``do_command.c``).
    """
    found: list[str] = []
    escaped = False
    for char in line.split(" ", 5)[5]:
        if escaped and (char == "%" or (debian and char == "\\")):
            found[-1] = char
            escaped = False
            continue
        if char == "%" and not escaped:
            break
        escaped = char == "\\" and not escaped
        found.append(char)
    return "".join(found)


@QUICK
@given(LINE, ANY, ANY.filter(bool), without(ANY.filter(bool), "/", "\0"))
def test_a_crontab_has_its_own_lines_only(name: str, notify: str, program: str, file: str) -> None:
    workflow = Workflow(name, (), schedule="0 30\n2 ? * *", timezone="Europe/Berlin")
    path = Path("/home/me/some where") / file
    texts = (name, notify, program, file)
    try:
        text = crontab_of(workflow, path, ["submarine", program], {"--notify": notify})
    except UsageError:
        assert not all(text.isprintable() for text in texts)
        return
    first, _, zone, line = text.removesuffix("\n").split("\n")
    assert (first, zone) == (f"# {name}: 0 30 2 ? * *", "CRON_TZ=Europe/Berlin")
    assert line.startswith("30 2 * * * cd ")
    words = ["submarine", program, "workflow", "run", path.name, "--scheduled"]
    words[4] = f"./{path.name}" if path.name.startswith("-") else path.name
    words += ["--notify", notify] if notify else []
    for debian in (True, False):
        command = cron_command(line, debian=debian)
        assert shlex.split(command) == ["cd", str(path.parent), "&&", *words]


@QUICK
@given(ANY)
def test_a_workflows_name_is_a_line_and_a_file_name(name: str) -> None:
    problems = check(Workflow(name, read_workflow("nodes: [{name: a, type: noop}]", "x").nodes))
    sound = name.isprintable() and not {"/", "\\"} & set(name) and 0 < len(name) <= 128
    assert (not problems) == (sound and name not in (".", ".."))
