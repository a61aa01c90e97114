"""Any text stays a value: one property for each place that text goes to.

Each test reads what was written by the rules of the reader (a shell, cron, Azkaban, a YAML parser)
and expects the value as it was, or a refusal before anything was written.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import shlex
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from submarine_jobs.backends.yarn.application import single as application
from submarine_jobs.cli import _show_error
from submarine_jobs.errors import UsageError
from submarine_jobs.model import JobSpec, Role, check_image_name, fill_spec
from submarine_jobs.options.option_values import parse_env, parse_param
from submarine_jobs.submit.job_directory import slug
from submarine_jobs.text import TerminalFilter, filter_for_terminal
from submarine_jobs.tracking import IndexEntry, JobQuery, JobStore
from submarine_runtime.protocol import State
from submarine_workflows.azkaban.project import with_values
from submarine_workflows.azkaban.project.compiler import compile_workflow, flow_text
from submarine_workflows.display import Caption, NextCommand, NodeState, RunState, as_svg
from submarine_workflows.display.html import run_html, workflow_html
from submarine_workflows.export.airflow import dag_of
from submarine_workflows.export.crontab import crontab_of
from submarine_workflows.export.shell import line_of
from submarine_workflows.formats import read_properties, read_workflow
from submarine_workflows.local.parameters import as_properties
from submarine_workflows.model import (
    ExecutionSettings,
    Kind,
    Node as Node_,
    Workflow,
    check,
    environment_of,
    file_name,
)
from submarine_workflows.notifications import Notice
from tests.azkaban.executor import partition, resolve
from tests.azkaban.project import Node, load_project
from tests.random_examples import examples

#: Enough to find what these characters break; the whole module takes some seconds.
QUICK = settings(max_examples=examples(80), deadline=None, derandomize=True)
#: Characters that mean something to one of the readers come often.
ANY = st.text(
    st.one_of(
        st.sampled_from("'\"\\ \n\r\t$%`{}@#;&|<>-=:!*?~[]()\x1b\x85\u2028é"),
        st.characters(codec="utf-8"),
    )
)
LINE = ANY.map(lambda text: "".join(c for c in text if c.isprintable()))


#: What moves, hides or reorders other text.
UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


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
    made = compile_workflow(workflow, folder, ExecutionSettings(outputs="out"))
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


def printed(script: str, variables: dict[str, str] | None = None) -> list[str]:
    """The words that ``submarine`` is called with in a shell's script, each call ended by a NUL."""
    head = "submarine() { printf '%s\\0' \"$@\" END; }\n"
    environ = {"PATH": os.environ["PATH"], **(variables or {})}
    done = subprocess.run(
        ["bash", "-c", head + script], capture_output=True, check=True, env=environ, timeout=60
    )
    return done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]


WORDS = st.lists(without(ANY, "\0", "${"), min_size=1, max_size=20)


@settings(QUICK, max_examples=examples(25))
@given(WORDS, without(ANY, "\0"))
def test_words_of_a_shell_are_values(words: list[str], value: str) -> None:
    yarn = " ".join(application.quote(word) for word in words)
    assert printed(f"submarine {yarn}") == [*words, "END"]
    line = line_of(["submarine", *words, "a${x}b"], lambda name: "P_X")
    assert printed(line, {"P_X": value}) == [*words, f"a{value}b", "END"]


@QUICK
@given(ANY)
def test_a_placeholder_in_a_command_is_one_word(value: str) -> None:
    spec = JobSpec("j", "yarn", roles=(Role(command="cat %input_path%"),), input_path=value)
    try:
        command = fill_spec(spec).roles[0].command
    except UsageError:
        assert shlex.quote(value) != value
        return
    assert shlex.split(command or "") == ["cat", *([value] if value else [])]
    # For a shell, a comment begins only with a word; `shlex` ends words at each `#`.
    assert not value.startswith("#")
    assert not set(value) & set("{}$`;&|<>()")


@QUICK
@given(ANY)
def test_an_image_is_a_name_between_double_quotes(image: str) -> None:
    for text in (image, f"x{image}", f"registry/x:{image}", "registry/x\n"):
        try:
            found = check_image_name(text)
        except UsageError:
            continue
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*", found)


@QUICK
@given(ANY, ANY)
def test_the_name_of_a_variable_is_one(name: str, value: str) -> None:
    for parse in (parse_env, parse_param):
        for text in (f"{name}={value}", f"A{name}={value}", f"A\n={value}"):
            try:
                found, _ = parse(text)
            except UsageError:
                continue
            assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", found)
    assert environment_of({f"env.{name}": value}) == {name: value}


AIRFLOW = """
config: {date: D, failure.emails: M, env.DAY: "${date}", env.FIXED: F}
nodes:
  - {name: fit, notebook: fit.ipynb, params: {date: "${date}", fixed: F}, job: {queue: "q${date}"}}
"""


@settings(QUICK, max_examples=examples(40))
@given(without(ANY, "\0"), without(ANY, "\0", "${"), ANY)
def test_a_dag_file_holds_constants_and_its_steps_values(day: str, fixed: str, mail: str) -> None:
    workflow = read_workflow(AIRFLOW, "nightly")
    config = {**workflow.config, "date": "x", "failure.emails": mail, "env.FIXED": fixed}
    node = replace(workflow.nodes[0], params={**workflow.nodes[0].params, "fixed": fixed})
    text = dag_of(replace(workflow, config=config, nodes=(node,)), fixed or "f")
    found = {}
    for call in ast.walk(ast.parse(text)):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Step":
            found = {one.arg: one.value for one in call.keywords}
    for address in ast.literal_eval(found.get("email", ast.parse("[]", mode="eval").body)):
        assert not set(address) & set("\r\n,;")  # no second header, no second address
    script = ast.literal_eval(found["bash_command"]).replace("mkdir", "true")
    variables = {"P_DATE": day, "P_FLOW_EXECID": "7"}
    words = printed(f'{script}\nprintf "%s\\0" "$DAY" "$FIXED"', variables)
    assert words[-2:] == [day, fixed]
    assert words[words.index("date") + 1] == day
    assert words[words.index("fixed") + 1] == fixed
    assert words[words.index("--job") + 1] == f"queue=q{day}"


@QUICK
@given(st.dictionaries(ANY, ANY, max_size=4), ANY)
def test_yaml_gives_the_values_back(config: dict[str, str], text: str) -> None:
    flow = {"config": config, "nodes": [{"name": text, "config": {"command": text}}]}
    written = flow_text(flow)
    assert yaml.safe_load(written.decode()) == flow
    assert yaml.safe_load(written) == flow


def java_lines(text: str) -> list[str]:
    """Lines of a properties file after ``java.util.Properties.LineReader``: LF, CR and CR LF."""
    return [line for line in re.split(r"\r\n|\r|\n", text) if line]


@QUICK
@given(st.dictionaries(ANY.filter(bool), ANY, max_size=5))
def test_properties_of_java_give_the_values_back(values: dict[str, str]) -> None:
    text = as_properties(values)
    assert text.isascii()
    assert len(java_lines(text)) == len(values)
    assert {key: value for key, (value, _) in read_properties(text).items()} == values


@QUICK
@given(ANY.filter(lambda text: not set(text) & set("\r\n\\")))
def test_a_line_of_java_is_one_line(value: str) -> None:
    found = read_properties(f"type=noop\nx={value}\n")
    assert set(found) == {"type", "x"}
    assert found["x"][0] == value.lstrip(" \t\f")


class Tags(HTMLParser):
    """The elements of a page: name, attributes and their values."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    @property
    def shape(self) -> set[tuple[str, tuple[str, ...]]]:
        return {(tag, tuple(sorted(attrs))) for tag, attrs in self.found}


def pages_of(text: str) -> str:
    node = Node_(
        text, Kind.COMMAND, config={"command": text}, condition=text, notebook=text, cells=(text,)
    )
    after = Node_(f"{text}2", Kind.NOTEBOOK, notebook=text, depends_on=(text,), condition=text)
    workflow = Workflow(text, (node, after), schedule=text, timezone=text)
    states = {text: NodeState("FAILED", detail=text), f"{text}2": NodeState(text, detail=text)}
    run = RunState(text, text, 1.0, None, states, detail=text, url=text)
    return "".join(
        [
            as_svg(workflow, {text: text}, {text: text}),
            workflow_html(workflow, Caption(lines=[text])),
            run_html(workflow, run, [NextCommand(text, text)], 5.0),
        ]
    )


#: Texts of which each makes other elements: an edge, a link, a sign, code.
PLAIN = ("", "plain `code`", "https://host/x", "SUCCEEDED")


@pytest.mark.slow
@QUICK
@given(ANY)
def test_pages_of_a_workflow_hold_text_and_no_markup(text: str) -> None:
    page = pages_of(text)
    found = Tags(page)
    allowed = set().union(*(Tags(pages_of(plain)).shape for plain in PLAIN))
    assert found.shape <= allowed
    for _, attrs in found.found:
        assert (attrs.get("href") or "https://").startswith(("http://", "https://"))
        assert "url(" not in (attrs.get("style") or "")
    assert not UNFIT.search(page)


SEQUENCES = st.lists(
    st.sampled_from(
        ["\x1b[31m", "\x1b[2J", "\x1b]0;title\x07", "\x1b]52;c;eA==\x1b\\", "\x1bc", "\x9b2J",
         "\x1b", "\x1b[", "\x1bP", "a\rb", "\x08", "\u202e", "plain\n"]
    )
    | ANY,
    max_size=12,
)  # fmt: skip


@QUICK
@given(SEQUENCES, st.integers(1, 7))
def test_a_terminal_gets_colours_and_nothing_else(parts: list[str], size: int) -> None:
    data = "".join(parts).encode()
    log = TerminalFilter()
    pieces = [log.feed(data[at : at + size]) for at in range(0, len(data), size)]
    shown = "".join([*pieces, log.feed(b"", final=True)])
    for text in (shown, filter_for_terminal("".join(parts), Terminal())):
        plain = re.sub(r"\x1b\[[0-9;:]*m", "", text)
        assert not UNFIT.search(plain.replace("\r", ""))
    stream = io.StringIO()
    with contextlib.redirect_stderr(stream):
        _show_error(UsageError("".join(parts)), as_json=False)
    assert not UNFIT.search(stream.getvalue())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_program_in_a_file_keeps_its_bytes() -> None:
    assert filter_for_terminal("a\x0cb\x1b[2J", io.StringIO()) == "a\x0cb\x1b[2J"


@QUICK
@given(ANY)
def test_a_name_in_a_path_is_one_part_of_it(name: str) -> None:
    part = file_name(name)
    assert re.fullmatch(r"[\w+~-][\w.+~-]*", part, re.ASCII)
    assert (Path("/runs") / part).parent == Path("/runs")
    assert re.fullmatch(r"[a-z0-9-]+", slug(name))


@settings(QUICK, max_examples=examples(30))
@given(ANY, ANY)
def test_a_text_in_the_index_is_a_value_of_sql(
    tmp_path_factory: pytest.TempPathFactory, name: str, other: str
) -> None:
    store = JobStore(tmp_path_factory.mktemp("index") / "jobs.sqlite")
    store.put(IndexEntry("a-20261120-0001", name, "local", "p", "file:///x", 1.0, State.RUNNING))
    assert store.named(name) is not None
    assert (store.named(other) is None) == (name != other)
    assert store.page(JobQuery(text="%", user=other)).total == ("%" in name)
    assert store.page(JobQuery(text=other, user=name)).total <= 1
    assert store.beginning_with(f"a-2026{other}") == ([] if other else store.newest())


@QUICK
@given(ANY, ANY)
def test_a_notice_is_one_line_of_json(detail: str, log: str) -> None:
    notice = Notice("FAILED", detail, log=log, workflow=detail)
    told = json.dumps(notice.to_json((), {}))
    assert "\n" not in told
    for value in json.loads(told).values():
        assert not UNFIT.search(str(value))
