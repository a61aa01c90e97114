"""The grammar as a whole; the jobs in here are real ones of the local backend."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given, settings, strategies as st

from submarine_jobs.commands import complete, execute
from submarine_jobs.commands.grammar import VERBS, cache_queues, grammar, plugins
from submarine_jobs.commands.grammar.verbs import PLUGIN_SUMMARIES
from submarine_jobs.errors import ClusterError, SubmarineError, UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.model import read_record
from submarine_jobs.program import Cell, CellCollection
from submarine_runtime.protocol import JobRecord, State
from tests.frontends import RecordingFrontend
from tests.random_examples import examples


class Notebook(RecordingFrontend):
    """A notebook with collected cells and a variable."""

    def __init__(self) -> None:
        super().__init__("notebook")
        self.collection: CellCollection = CellCollection()
        self.namespace = {"x": 41}


@pytest.fixture
def frontend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Notebook:
    for variable in ("HADOOP_CONF_DIR", "SUBMARINE_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    monkeypatch.chdir(tmp_path)
    return Notebook()


def write(name: str, code: str) -> None:
    Path(name).write_text(textwrap.dedent(code), encoding="utf-8")


def value(outcome: Outcome) -> Any:
    """The outcome's value, which must be plain JSON."""
    return json.loads(json.dumps(outcome.value))


def test_help_lists_every_verb_and_imports_no_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    before = set(sys.modules)
    text = execute(["--help"], Frontend()).text
    for name in (*VERBS, *PLUGIN_SUMMARIES):
        assert f"  {name} " in text
    assert not {"submarine_minicluster.cli", "submarine_kernel.kernelspecs.installation"} & (
        set(sys.modules) - before
    )
    assert execute([], Frontend()).text == text
    assert capsys.readouterr().out == ""


def commands() -> list[list[str]]:
    """The words of all verbs, and of those of groups."""
    found = []
    with click.Context(grammar(), info_name="submarine") as ctx:
        for verb in VERBS:
            command = grammar().get_command(ctx, verb)
            inner = command.commands if isinstance(command, click.Group) else {}
            found += [[verb, name] for name in inner] or [[verb]]
    return found


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_each_verb_has_help_with_an_example_and_json(words: list[str]) -> None:
    text = execute([*words, "--help"], Frontend()).text
    assert f"submarine {' '.join(words)}" in text
    assert "Examples:" in text
    assert "--json" in text


def test_plugins_of_the_project_are_found() -> None:
    assert set(PLUGIN_SUMMARIES) <= set(plugins())


def test_a_plugins_output_goes_where_the_frontend_wants_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    frontend = Frontend()
    frontend.plugin_output = io.StringIO()
    execute(["minicluster", "--help"], frontend)
    assert "start" in frontend.plugin_output.getvalue()
    with pytest.raises(SubmarineError, match="There is no minicluster"):
        execute(["minicluster", "status"], frontend)
    assert capsys.readouterr().out == ""


def test_version() -> None:
    assert execute(["--version"], Frontend()).text.startswith("submarine ")


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(
        st.sampled_from([*VERBS, "minicluster", "--help", "--json", "-h", "--version", "--", "x"])
        | st.text(max_size=8),
        max_size=5,
    ).filter(lambda words: not {"doctor", "minicluster", "kernel"} & set(words))
)
def test_any_words_end_in_an_outcome_or_one_of_our_errors(words: list[str]) -> None:
    class Nowhere(Frontend):
        def config(self, options: Any = None) -> Any:
            raise UsageError("no configuration in this test")

    try:
        assert isinstance(execute(words, Nowhere()), Outcome)
    except SubmarineError as error:
        if not error.message.strip():
            raise


@pytest.mark.slow
def test_a_script_from_submit_to_log(frontend: Notebook) -> None:
    write("train.py", "import sys; print('args', sys.argv[1:]); print('oops', file=sys.stderr)")
    outcome = execute(["run", "train.py", "--wait", "--", "--epochs", "3"], frontend)
    assert outcome.exit_code == 0
    assert outcome.job is not None
    facts = value(outcome)
    assert facts["record"]["state"] == "SUCCEEDED"
    shown = execute(["show", "last", "--json"], frontend)
    assert read_record(json.loads(shown.rendered())).state is State.SUCCEEDED
    logs = execute(["logs", "train", "--json"], frontend)
    assert value(logs)["stdout"]["text"] == "args ['--epochs', '3']\n"
    assert value(logs)["stderr"]["text"] == "oops\n"
    part = execute(
        ["logs", facts["job_id"], "--stream", "stdout", "--offset", "5", "--bytes", "2"], frontend
    )
    assert value(part)["stdout"] == {"offset": 5, "length": 2, "text": "['"}
    listed = execute(["list", "--state", "ENDED", "--name", "tr*", "--json"], frontend)
    assert [job["job_id"] for job in value(listed)] == [facts["job_id"]]
    assert value(execute(["list", "--state", "ACTIVE"], frontend)) == []


@pytest.mark.slow
def test_a_failed_job_is_exit_code_1_and_names_its_reason(frontend: Notebook) -> None:
    write("bad.py", "import sys; sys.exit(3)")
    outcome = execute(["run", "bad.py", "--wait"], frontend)
    assert outcome.exit_code == 1
    assert value(outcome)["record"]["exit_code"] == 3
    assert execute(["wait", "last"], frontend).exit_code == 1


@pytest.mark.slow
def test_values_travel_both_ways(frontend: Notebook) -> None:
    frontend.collection.add(Cell("a", "answer = x + 1"))
    outcome = execute(["run", "cells", "--with", "x", "--return", "answer", "--wait"], frontend)
    assert outcome.exit_code == 0, outcome.text
    assert outcome.job is not None
    assert outcome.job.result["answer"] == 42


@pytest.mark.slow
def test_undefined_names_stop_a_submit_and_force_goes_on(frontend: Notebook) -> None:
    frontend.collection.add(Cell("a", "print(never_defined)"))
    with pytest.raises(UsageError, match="never_defined"):
        execute(["run", "hole"], frontend)
    assert execute(["list"], frontend).value == []
    dry = execute(["run", "hole", "--dry-run"], frontend)
    assert dry.exit_code == 2
    assert value(dry)["refused"] is True
    forced = execute(["run", "hole", "--force", "--wait"], frontend)
    assert forced.exit_code == 1
    assert any("never_defined" in line for line in frontend.said)


def test_dry_run_shows_the_request_and_submits_nothing(frontend: Notebook) -> None:
    frontend.collection.add(Cell("a", "print(1)"))
    frontend.collection.add(Cell("b", "LAYERS = 3", filename="model.py"))
    outcome = execute(["run", "digits", "--memory", "1.5G", "--dry-run", "--json"], frontend)
    plain = value(outcome)
    assert plain["submitted"] is False
    assert plain["spec"]["roles"][0]["resources"] == {"memory": 1536, "vcores": 1, "gpus": 0}
    assert plain["bundle"]["files"] == {"main.py": 9, "model.py": 11}
    assert plain["bundle"]["digest"] in execute(["run", "digits", "--dry-run"], frontend).text
    assert execute(["list"], frontend).value == []


def test_a_dry_run_refuses_values_that_cannot_travel(frontend: Notebook) -> None:
    frontend.collection.add(Cell("a", "print(f)"))
    frontend.namespace = {"f": lambda: 0, "open": open}
    outcome = execute(["run", "digits", "--with", "f", "--dry-run", "--force"], frontend)
    assert outcome.exit_code == 2
    assert "f holds a function" in outcome.text
    unknown = execute(["run", "digits", "--with", "f,nope", "--dry-run"], frontend)
    assert "--with names nope" in unknown.text
    assert "open" not in unknown.text


def test_cells_script_and_clear(frontend: Notebook) -> None:
    frontend.collection.add(Cell("a", "print('<b>')", label="[1]"))
    frontend.collection.add(Cell("b", "N = 1", filename="model.py", label="[2]"))
    cells = execute(["cells"], frontend)
    assert [item["file"] for item in value(cells)["cells"]] == ["main.py", "model.py"]
    assert "<b>" not in str(cells.html)
    script = execute(["script"], frontend)
    assert "print('<b>')" in script.text
    assert "<b>'" not in str(script.html)
    assert "model.py" in script.text
    assert execute(["script", "--file", "model.py"], frontend).text.strip() == "N = 1"
    with pytest.raises(UsageError, match=r"It has main\.py, model\.py"):
        execute(["script", "--file", "nope.py"], frontend)
    assert value(execute(["clear"], frontend)) == {"forgotten": 2}
    assert value(execute(["cells"], frontend))["cells"] == []


@pytest.mark.slow
def test_cancel_rerun_and_whose_job_it_is(
    frontend: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("slow.py", "import time; print('on', flush=True); time.sleep(60)")
    job = value(execute(["run", "slow.py"], frontend))["job_id"]
    monkeypatch.setenv("SUBMARINE_USER", "somebody-else")
    with pytest.raises(UsageError, match="Add --yes"):
        execute(["cancel", job], frontend)
    frontend.interactive = True
    assert "goes on" in execute(["cancel", job], frontend).text
    assert execute(["rerun", job], frontend).text == "Nothing was submitted."
    assert "runs their code as you" in frontend.questions[-1]
    frontend.answer = True
    assert value(execute(["cancel", job], frontend))["state"] == "CANCELLED"
    assert "has ended already" in execute(["cancel", job], frontend).text
    monkeypatch.delenv("SUBMARINE_USER")
    again = value(execute(["rerun", job], frontend))
    assert again["rerun_of"] != again["job_id"]
    assert value(execute(["cancel", again["job_id"]], frontend))["state"] == "CANCELLED"


@pytest.mark.slow
def test_an_interrupted_wait_leaves_the_job_alone(
    frontend: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("slow.py", "import time; time.sleep(60)")

    def interrupt(*_: object, **__: object) -> JobRecord:
        raise KeyboardInterrupt

    monkeypatch.setattr(frontend, "watch", interrupt)
    outcome = execute(["run", "slow.py", "--wait"], frontend)
    assert outcome.exit_code == 130
    assert "goes on" in outcome.text
    assert "%submarine cancel" in outcome.text
    assert outcome.job is not None
    assert not outcome.job.state.ended
    outcome.job.cancel()


@pytest.mark.slow
def test_an_interrupt_beside_the_wait_cancels_where_that_was_asked_for(
    frontend: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupt may come while the display is being made, before anything waits."""
    write("slow.py", "import time; time.sleep(60)")

    def interrupt(*_: object, **__: object) -> JobRecord:
        raise KeyboardInterrupt

    monkeypatch.setattr(frontend, "watch", interrupt)
    outcome = execute(["run", "slow.py", "--wait", "--on-interrupt", "cancel"], frontend)
    assert outcome.exit_code == 130
    assert "was cancelled" in outcome.text
    assert outcome.job is not None
    assert str(outcome.job.state) == "CANCELLED"


@pytest.mark.slow
def test_tail_is_whole_lines(frontend: Notebook) -> None:
    write("many.py", "for n in range(20000): print('line', n)")
    execute(["run", "many.py", "--wait"], frontend)
    tail = execute(["logs", "last", "--tail", "3", "--stream", "stdout"], frontend)
    assert tail.text == "line 19997\nline 19998\nline 19999"
    none = execute(["logs", "last", "--tail", "0", "--stream", "stdout"], frontend)
    assert none.text == ""
    more = execute(["logs", "last", "--tail", "15000", "--stream", "stdout", "--json"], frontend)
    assert value(more)["stdout"]["text"].splitlines()[0] == "line 5000"


@pytest.mark.slow
def test_completion_without_any_network(frontend: Notebook) -> None:
    assert complete(["ru"], frontend) == ["run"]
    assert {"run", "rerun", "minicluster"} <= set(complete([""], frontend))
    assert "--worker_resources" in complete(["run", "--worker_r"], frontend)
    assert complete(["run", "--backend", "l"], frontend) == ["local"]
    assert complete(["run", "--memory", "nonsense", "--on-interrupt", ""], frontend) == [
        "detach",
        "cancel",
    ]
    assert complete(["list", "--state", "RUN"], frontend) == ["RUNNING"]
    assert complete(["run", "--profile", "mini"], frontend) == ["minicluster"]
    assert complete(["no-such-verb", "x"], frontend) == []
    write("train.py", "print(1)")
    job = execute(["run", "train.py", "--wait"], frontend).job
    assert job is not None
    assert job.id in complete(["show", "tr"], frontend)
    assert "last" in complete(["logs", "-f", ""], frontend)
    cache_queues(frontend.config({}), ["default", "gpu"])
    assert complete(["run", "--queue", "g"], frontend) == ["gpu"]


def test_config_shows_values_with_sources(frontend: Notebook) -> None:
    shown = value(execute(["config", "--json"], frontend))
    by_name = {item["name"]: item for item in shown["values"]}
    assert by_name["backend"] == {
        "name": "backend",
        "value": "local",
        "source": "SUBMARINE_BACKEND",
        "locked": False,
    }
    assert "SUBMARINE_BACKEND" in execute(["config"], frontend).text


def test_a_state_directory_that_cannot_be_is_one_sentence(
    frontend: Notebook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "a file"))
    with pytest.raises(SubmarineError, match="a file: File exists") as caught:
        execute(["list"], frontend)
    assert "state_dir" in caught.value.fix


def test_a_working_directory_that_is_gone(frontend: Notebook, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(SubmarineError, match="does not exist any more"):
        execute(["list"], frontend)


@pytest.mark.slow
def test_a_wait_that_loses_the_cluster_says_that_the_job_goes_on(
    frontend: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("slow.py", "import time; time.sleep(60)")

    def lose(*_: object, **__: object) -> JobRecord:
        raise ClusterError("The cluster does not answer.", "Check it.")

    monkeypatch.setattr(frontend, "watch", lose)
    with pytest.raises(ClusterError, match=r"Check it\. The job goes on: `%submarine wait slow-"):
        execute(["run", "slow.py", "--wait"], frontend)
    assert value(execute(["cancel", "last"], frontend))["state"] == "CANCELLED"


@pytest.mark.slow
def test_wait_for_several_jobs_gives_the_worst_exit_code(frontend: Notebook) -> None:
    write("good.py", "print(1)")
    write("bad.py", "raise SystemExit(9)")
    execute(["run", "good.py"], frontend)
    execute(["run", "bad.py"], frontend)
    outcome = execute(["wait", "good", "bad", "--json"], frontend)
    assert outcome.exit_code == 1
    assert [record["state"] for record in value(outcome)] == ["SUCCEEDED", "FAILED"]
