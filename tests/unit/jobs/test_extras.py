"""A missing extra is one sentence with the command, wherever a user meets it; help needs none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from submarine_jobs.commands import CellBody, complete, execute
from submarine_jobs.commands.grammar import complete_below
from submarine_jobs.extras import EXTRAS, MissingExtraError, install_command, require_extra
from submarine_jobs.frontends import Frontend
from submarine_workflows.headless.papermill_engine import SubmarineEngine
from submarine_workflows.locations import find_location
from submarine_workflows.notebook import find_run
from submarine_zeppelin.__main__ import main as zeppelin_main

FLOW = "nodes:\n  - name: a\n    type: command\n    config: {command: 'true'}\n"
COMMANDS = [
    ("workflows", "workflow check a.flow"),
    ("workflows", "workflow run a.flow"),
    ("workflows", "workflow export a.flow --to cron"),
    ("workflows", "workflow submit a.flow --to azkaban"),
    ("workflows", "workflow history a.flow"),
    ("workflows", "workflow await file:///data"),
    ("workflows", "run a.ipynb -o b.ipynb"),
    ("zeppelin", "zeppelin install /opt/zeppelin"),
    ("zeppelin", "zeppelin check /opt/zeppelin"),
    ("zeppelin", "zeppelin export-note a.zpln"),
]


class Terminal(Frontend):
    """A terminal, from which notebooks are executed."""

    kind = "cli"


@pytest.fixture
def no_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Python find none of the modules: neither by an import nor by find_spec."""
    for modules in EXTRAS.values():
        for name in modules:
            monkeypatch.setitem(sys.modules, name, None)


def assert_one_sentence(error: MissingExtraError, extra: str) -> None:
    text = str(error)
    assert text.startswith(f"The extra {extra} is not installed (missing: {EXTRAS[extra][0]}")
    assert text.endswith(f"; type {sys.executable} -m pip install 'jupyter-submarine[{extra}]'")
    assert ". " not in text
    assert "\n" not in text


@pytest.mark.usefixtures("no_extras")
@pytest.mark.parametrize(("extra", "words"), COMMANDS)
def test_a_command_names_the_missing_extra(
    extra: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.flow").write_text(FLOW, encoding="utf-8")
    with pytest.raises(MissingExtraError) as caught:
        execute(words.split(), Terminal())
    assert_one_sentence(caught.value, extra)
    assert [path.name for path in tmp_path.iterdir()] == ["a.flow"]


@pytest.mark.usefixtures("no_extras")
def test_a_cell_with_a_workflow_names_the_missing_extra() -> None:
    with pytest.raises(MissingExtraError) as caught:
        execute(["workflow", "nightly"], Frontend(), CellBody(FLOW))
    assert_one_sentence(caught.value, "workflows")


@pytest.mark.usefixtures("no_extras")
@pytest.mark.parametrize(
    "call",
    [
        lambda: find_location("memory://bucket/a.ipynb"),
        lambda: find_run("azkaban:7", "https://azkaban.example", Path("state")),
    ],
    ids=["location of fsspec", "display of a run in Azkaban"],
)
def test_other_uses_name_the_missing_extra(call: Callable[[], object]) -> None:
    with pytest.raises(MissingExtraError) as caught:
        call()
    assert_one_sentence(caught.value, "workflows")


def test_the_papermill_engine_names_the_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    # papermill, which loads the engine, is installed without the extra.
    monkeypatch.setitem(sys.modules, "cronsim", None)
    with pytest.raises(MissingExtraError) as caught:
        SubmarineEngine.execute_notebook({}, "python3", output_path="b.ipynb")
    assert_one_sentence(caught.value, "workflows")


@pytest.mark.usefixtures("no_extras")
def test_the_execution_manager_of_a_server_names_the_missing_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "submarine_workflows.scheduler", raising=False)
    with pytest.raises(MissingExtraError) as caught:
        import_module("submarine_workflows.scheduler")
    assert_one_sentence(caught.value, "workflows")


@pytest.mark.usefixtures("no_extras")
def test_the_zeppelin_process_names_the_missing_extra(capsys: pytest.CaptureFixture[str]) -> None:
    assert zeppelin_main() == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.rstrip().endswith("-m pip install 'jupyter-submarine[zeppelin]'")


@pytest.mark.usefixtures("no_extras")
@pytest.mark.parametrize("words", sorted({words for _, words in COMMANDS if "run a" not in words}))
def test_help_needs_no_extra(words: str) -> None:
    group, verb = words.split()[:2]
    assert execute([group, verb, "--help"], Frontend()).text.startswith(
        f"Usage: submarine {group} {verb}"
    )
    assert execute([group, "--help"], Frontend()).text.startswith(f"Usage: submarine {group}")


@pytest.mark.usefixtures("no_extras")
def test_completion_needs_no_extra() -> None:
    assert {"workflow", "zeppelin"} <= set(complete([""], Frontend()))
    assert "check" in complete(["workflow", "ch"], Frontend())
    assert "--svg" in complete(["workflow", "graph", "--"], Frontend())
    assert "--replace" in complete(["zeppelin", "install", "--"], Frontend())
    assert "--schedule" in complete(["workflow", "--"], Frontend(), in_cell=True)
    assert "dependsOn:" in complete_below("workflow", "nodes:\n  - name: a\n    depe")


@pytest.mark.usefixtures("no_extras")
def test_a_mistake_is_reported_before_a_missing_extra() -> None:
    with pytest.raises(Exception, match="--tow"):
        execute(["workflow", "export", "a.flow", "--tow", "cron"], Frontend())


def test_an_installed_extra_is_accepted() -> None:
    for extra in EXTRAS:
        if extra != "spark":  # Half a gigabyte, which only test-full installs, elsewhere.
            require_extra(extra)


def test_only_the_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "papermill", None)
    with pytest.raises(MissingExtraError, match=r"\(missing: papermill\)"):
        require_extra("workflows")


def test_the_command_is_quoted_for_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/my python/bin/python")
    assert install_command("zeppelin") == (
        "'/opt/my python/bin/python' -m pip install 'jupyter-submarine[zeppelin]'"
    )
