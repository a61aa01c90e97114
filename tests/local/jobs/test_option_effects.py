"""Each option of each command has an effect: on the spec, the request, the output or the exit code.

The rows are compared with the grammar, so that an option without a row fails. A row has the words
of a command without the option and the words that the option adds; both commands are executed, and
what they give must differ by more than times and ids. Where the effect needs a cluster, a person or
a kernel, the row is a function and replaces the function that would reach it.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import io
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import nbformat
import pytest

from submarine_jobs import cli
from submarine_jobs.client import Job, PackedEnvironments, Session
from submarine_jobs.commands import CellBody, execute
from submarine_jobs.commands.grammar import grammar
from submarine_jobs.commands.run import parse_run
from submarine_jobs.config import load_config
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend, Outcome, TerminalFrontend
from submarine_jobs.options import spec_from_options
from submarine_jobs.program import Cell, CellCollection, parse_options
from submarine_magics.commands.completion import candidates
from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import port_names
from submarine_minicluster.settings import SavedCluster, Settings
from tests.azkaban import server as azkaban_server
from tests.azkaban.configured import configured
from tests.frontends import RecordingFrontend
from tests.notebooks import notebook

# The grammar


def options_of(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """Verb and long name of each option of a command and of those below it."""
    for param in command.params:
        if isinstance(param, click.Option):
            yield name, max(param.opts, key=lambda word: (word.startswith("--"), len(param.opts)))
    if isinstance(command, click.Group):
        with click.Context(command, info_name=name) as ctx:
            for verb in command.list_commands(ctx):
                child = command.get_command(ctx, verb)
                assert child is not None
                yield from options_of(child, f"{name} {verb}".strip())


def collecting_options() -> list[str]:
    """Options of a plain ``%%submarine`` line, as the completion offers them."""
    return [word for word in candidates(None, "%%", [""]) if word.startswith("--")]  # type: ignore[arg-type]


#: Those of ``job run`` besides its own one are the options of ``run``, as a unit test shows.
OPTIONS = [
    *(
        (verb, option)
        for verb, option in options_of(grammar(), "")
        if verb != "job run" or option == "--job_description"
    ),
    *options_of(grammar(in_cell=True), "%%"),
    *(("%%submarine", word) for word in collecting_options()),
]

# What a command gives

_NOISE = [
    (re.compile(r"[\w.-]+-\d{8}(-\d{6})?-[0-9a-f]{4}"), "JOB"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?([.,]\d+)?([+-]\d\d:\d\d)?"), "TIME"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "TIME"),
    (re.compile(r"\d{8}T\d{6}"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)?(e-?\d+)? ?(ms|s|min|m|h)\b"), "DURATION"),
    (re.compile(r"\d+\.\d{2,}(e-?\d+)?"), "FLOAT"),
    (re.compile(r"azkaban\.flow\.start\.\w+=.*"), "MOMENT"),
    (re.compile(r"\b[0-9a-f]{12,64}\b"), "DIGEST"),
    (re.compile(r"\b\d{10,}\b"), "NUMBER"),
    (re.compile(r"(?<=pid )\d+|(?<=\"pid\": )\d+|127\.0\.0\.1:\d+"), "ADDRESS"),
]


def quiet(text: str) -> str:
    """``text`` without what differs from call to call."""
    for pattern, word in _NOISE:
        text = pattern.sub(word, text)
    return text


class _Stream(io.TextIOWrapper):
    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def text(self) -> str:
        self.flush()
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode()


def see(*words: str) -> str:
    """Exit code, output and written files (those below ``out``) of a command line."""
    shutil.rmtree("out", ignore_errors=True)
    Path("out").mkdir()
    out, err = _Stream(), _Stream()
    with redirect_stdout(out), redirect_stderr(err):
        code = cli.main(list(words))
    assert "internal error" not in err.text(), err.text()
    files = [
        f"{path}: {path.read_bytes().decode(errors='replace')[:20_000]}"
        for path in sorted(Path("out").rglob("*"))
        if path.is_file()
    ]
    return quiet("\n".join([f"exit {code}", out.text(), err.text(), *files]))


def spec(*words: str) -> str:
    """The specification that the words after ``run`` mean, as JSON."""

    class Program:
        program = "main.py"
        digest = "d" * 64
        files = {"main.py": b"import torch\n"}

    options = parse_run(list(words))
    profile = load_config(options.config_options).profile
    return spec_from_options(options, profile, Program()).to_bytes().decode()


# Rows


@dataclass(frozen=True)
class Row:
    """A command, the words that the option adds, and how the effect is seen."""

    words: str
    extra: tuple[str, ...]
    how: Callable[..., str] = see

    def check(self) -> None:
        base = tuple(self.words.split())
        before = _without(self.how, base)
        after = self.how(*base, *self.extra)
        assert after != before, f"{self.extra} changed nothing: {after[:500]}"


@functools.cache
def _without(how: Callable[..., str], base: tuple[str, ...]) -> str:
    """What a command gives without the option; the same each time, else nothing is shown."""
    before, again = how(*base), how(*base)
    differences = list(difflib.unified_diff(before.splitlines(), again.splitlines(), n=0))
    assert not differences, f"The same command gave something else: {differences[2:8]}"
    return before


@dataclass(frozen=True)
class Effect:
    """An effect that a function shows; one function may show those of several options."""

    show: Callable[[pytest.MonkeyPatch], None]

    def check(self) -> None:
        _show(self.show)


@functools.cache
def _show(show: Callable[[pytest.MonkeyPatch], None]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        show(patch)


ROWS: dict[tuple[str, str], Row | Effect] = {}


def row(verb: str, option: str, *extra: str, base: str = "", how: Callable[..., str] = see) -> None:
    """Add the row of ``option``; ``extra`` are its words, for a flag just the option."""
    base = base or BASES[verb]
    assert (verb, option) not in ROWS, f"two rows for {verb} {option}"
    ROWS[verb, option] = Row(base, extra or (option,), how)


def effect(verb: str, *options: str) -> Callable[[Any], Any]:
    """Add the row of ``options`` whose effect the decorated function shows."""

    def add(show: Callable[[pytest.MonkeyPatch], None]) -> Callable[[pytest.MonkeyPatch], None]:
        for option in options:
            ROWS[verb, option] = Effect(show)
        return show

    return add


#: A command of each verb, to which the rows add an option.
BASES = {
    "list": "list",
    "show": "show pair",
    "logs": "logs pair",
    "metrics": "metrics pair",
    "tensorboard": "tensorboard quick --json",
    "wait": "wait pair",
    "stack": "stack pair",
    "cancel": "cancel quick",
    "save": "save quick",
    "models": "models quick",
    "publish": "publish quick --to out/7",
    "rerun": "rerun quick",
    "cells": "cells",
    "script": "script",
    "clear": "clear",
    "config": "config",
    "doctor": "doctor",
    "data list": "data list",
    "data put": "data put letters quick.py",
    "data rm": "data rm letters",
    "data show": "data show letters",
    "env build": "env build auto",
    "env check": "env check auto",
    "env list": "env list",
    "env publish": "env publish auto hdfs:///envs/e.tar.gz",
    "env rm": "env rm 00",
    "env show": "env show 00",
    "gc": "gc",
    "kernel check": "kernel check",
    "kernel install": "kernel install --prefix out",
    "kernel list": "kernel list",
    "kernel uninstall": "kernel uninstall",
    "minicluster env": "minicluster env",
    "minicluster logs": "minicluster logs",
    "minicluster status": "minicluster status",
    "minicluster stop": "minicluster stop",
    "notebook list": "notebook list",
    "notebook show": "notebook show book",
    "notebook start": "notebook start",
    "notebook stop": "notebook stop book",
    "notebook url": "notebook url book",
    "workflow await": "workflow await quick.py",
    "workflow cancel": "workflow cancel nightly",
    "workflow check": "workflow check nightly.flow",
    "workflow export": "workflow export nightly.flow --to cron",
    "workflow graph": "workflow graph nightly.flow",
    "workflow history": "workflow history",
    "workflow holds": "workflow holds '${train:accuracy}>0.9' --output train={\"accuracy\":0.93}",
    "workflow logs": "workflow logs nightly",
    "workflow run": "workflow run nightly.flow --dry-run",
    "workflow status": "workflow status nightly",
    "zeppelin check": "zeppelin check zeppelin",
    "zeppelin export-note": "zeppelin export-note note.zpln -o out/note.ipynb",
    "zeppelin install": "zeppelin install out/zeppelin",
    "zeppelin uninstall": "zeppelin uninstall zeppelin",
}

# run: the options that are in the specification

_JOB = "job --backend yarn"
_GANG = "job --backend yarn --worker 4"
_extra: tuple[str, ...]
for _base, _option, *_typed in (
    (_JOB, "--args", "--args", "-v 3"),
    (_JOB, "--framework", "--framework", "any"),
    (_JOB, "--worker", "--worker", "2"),
    (_GANG, "--ps", "--framework", "tensorflow", "--ps", "1"),
    (_JOB, "--chief", "--chief", "1"),
    (_JOB, "--role", "--role", "reader=1,cmd=cat"),
    (_JOB, "--worker_resources", "--worker_resources", "memory=3G,vcores=2,gpu=1"),
    (_JOB, "--worker_launch_cmd", "--worker_launch_cmd", "true"),
    (_JOB, "--worker_docker_image", "--worker_docker_image", "other:1"),
    (_JOB, "--tensorboard", "--tensorboard"),
    (_JOB + " --tensorboard", "--tensorboard_resources", "--tensorboard_resources", "memory=3G"),
    (_JOB + " --tensorboard", "--tensorboard_docker_image", "--tensorboard_docker_image", "tb:1"),
    (_JOB, "--memory", "--memory", "3G"),
    (_JOB, "--vcores", "--vcores", "2"),
    (_JOB, "--gpu", "--gpu", "2"),
    (_JOB, "--processes", "--processes", "2"),
    (_JOB, "--timeout", "--timeout", "2h"),
    (_GANG, "--min-workers", "--min-workers", "2"),
    (_GANG, "--gang-timeout", "--gang-timeout", "1m"),
    (_GANG, "--gang-retries", "--gang-retries", "1"),
    (_GANG, "--max-restarts", "--max-restarts", "1"),
    (_GANG, "--policy", "--policy", "any"),
    (_GANG, "--allow-failures", "--allow-failures", "25%"),
    (_GANG, "--require-collective", "--require-collective"),
    (_GANG, "--heartbeat", "--heartbeat", "2s"),
    (_GANG, "--lost-after", "--lost-after", "1m"),
    (_JOB, "--stall", "--stall", "5m:restart"),
    (_JOB + " --gpu 1", "--idle-gpu", "--idle-gpu", "1h:end"),
    (_JOB, "--input", "--input", "TRAIN=hdfs:///d"),
    (_JOB, "--input_path", "--input_path", "hdfs:///d"),
    (_JOB, "--checkpoint_path", "--checkpoint_path", "hdfs:///d"),
    (_JOB, "--saved_model_path", "--saved_model_path", "hdfs:///d"),
    (_JOB, "--resume", "--resume", "digits-20261120-7f3a"),
    (_GANG, "--restore", "--restore", "own"),
    (_JOB, "--param", "--param", "lr=0.1"),
    (_JOB, "--file", "--file", "quick.py:other.py"),
    (_JOB, "--archive", "--archive", "hdfs:///a.zip"),
    (_JOB, "--localization", "--localization", "hdfs:///a:b"),
    (_JOB, "--with", "--with", "x"),
    (_JOB, "--return", "--return", "x"),
    (_JOB + " --return x", "--return-all-ranks", "--return-all-ranks"),
    (_JOB, "--keep", "--keep", "*.keras"),
    (_JOB, "--save-output", "--save-output", "pred=hdfs:///d"),
    (_JOB, "--save-on-failure", "--save-on-failure"),
    (_JOB, "--python-env", "--python-env", "path:/opt/env"),
    (_JOB, "--docker_image", "--docker_image", "other:1"),
    (_JOB, "--env", "--env", "A=1"),
    (_JOB, "--secret", "--secret", "A=quick.py"),
    (_JOB, "--queue", "--queue", "ml"),
    (_JOB, "--share", "--share", "view:bob"),
    (_JOB, "--distribute_keytab", "--distribute_keytab"),
    (_JOB, "--priority", "--priority", "3"),
    (_JOB, "--node-label", "--node-label", "fast"),
    (_JOB, "--node", "--node", "node1"),
    (_JOB, "--rack", "--rack", "rack1"),
    (_GANG, "--spread", "--spread"),
    (_JOB, "--avoid-node", "--avoid-node", "node1"),
    (_JOB, "--network-interface", "--network-interface", "ib0"),
    (_JOB, "--gpu-topology", "--gpu-topology", "pack"),
    (_JOB, "--profile", "--profile", "other"),
    ("job", "--backend", "--backend", "yarn"),
    (_JOB, "--quicklink", "--quicklink", "Docs=http://host:80"),
):
    row("run", _option, *_typed, base=_base, how=spec)
for _role in ("ps", "chief", "evaluator"):
    _base = f"{_GANG} --framework tensorflow --{_role} 1"
    row("run", f"--{_role}_resources", f"--{_role}_resources", "memory=3G", base=_base, how=spec)
    row("run", f"--{_role}_launch_cmd", f"--{_role}_launch_cmd", "true", base=_base, how=spec)
    row("run", f"--{_role}_docker_image", f"--{_role}_docker_image", "i:1", base=_base, how=spec)
row("run", "--evaluator", "--evaluator", "1", base=_GANG + " --framework tensorflow", how=spec)

# run: the others


@effect("job run", "--job_description")
def _(patch: pytest.MonkeyPatch) -> None:
    Path("job.yaml").write_text("configs: {envs: {RATE: 0.1}}\n", encoding="utf-8")
    words = ("job", "run", "quick.py", "--dry-run", "--json")
    assert "RATE" not in see(*words)
    assert "RATE" in see(*words, "--job_description", "job.yaml")


@effect("run", "--keytab", "--principal")
def _(patch: pytest.MonkeyPatch) -> None:
    Path("k").write_bytes(b"keys")
    words = ("run", "quick.py", "--dry-run", "--keytab", "k")
    assert "keytab is set (--keytab), but not principal" in see(*words)
    assert "principal" not in see(*words, "--principal", "me@R")
    keytab = str(Path("k").absolute())
    options = parse_run(["quick.py", "--keytab", "k", "--principal", "me@R"]).config_options
    assert (options["keytab"], options["principal"]) == (keytab, "me@R")


@effect("login", "--json")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TerminalFrontend, "ask_password", lambda *_: "word")
    patch.setattr("submarine_runtime.kerberos.login", lambda *_: None, raising=False)
    patch.setattr(
        "submarine_runtime.kerberos.credential_state",
        lambda: SimpleNamespace(principal="me@R", lifetime=60.0),
        raising=False,
    )
    assert "me@R has a ticket for" in see("login", "me")
    assert '"seconds": 60' in see("login", "me", "--json")


row("run", "--name", "--name", "other", base="run quick.py --dry-run")
row("run", "--program", "--program", "other.py", base="run quick --dry-run --json")
row("run", "--wait", base="run plain.py")
row("run", "--dry-run", base="run plain.py")
row("run", "--force", base="run wrong.py --dry-run")
row("run", "--verbose", base="run plain.py")
row("run", "--json", base="run quick.py --dry-run")


def orders(*words: str) -> str:
    """How long the agent of the job that ``words`` submit would wait for HDFS."""

    def submit(_: Any, submission: Any) -> Any:
        print(submission.agent.save_grace)
        raise click.exceptions.Exit(0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("submarine_jobs.backends.local.backend.LocalBackend.submit", submit)
        return see(*words)


_SPARK = "etl --backend yarn --type spark"
row("run", "--type", "--type", "spark", base="etl --backend yarn", how=spec)
row("run", "--executor", "--executor", "3", base=_SPARK, how=spec)
row("run", "--executor_resources", "--executor_resources", "gpu=1", base=_SPARK, how=spec)
row("run", "--conf", "--conf", "hdfs_wait_minutes=3", base="run plain.py --name brief", how=orders)


@effect("run", "--on-interrupt")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TerminalFrontend, "watch", interrupted)
    left = see("run", "sleep.py", "--wait")
    assert "goes on" in left
    assert "was cancelled" in see("run", "sleep.py", "--wait", "--on-interrupt", "cancel")
    see("cancel", "last")
    see("cancel", "sleep", "--yes")


def interrupted(self: Frontend, job: Job, *, on_interrupt: str = "detach", log: bool = True) -> Any:
    """As ``watch`` that a person interrupts at once."""
    raise KeyboardInterrupt


def executed(*words: str) -> str:
    """What the kernel of ``run NOTEBOOK`` would be given: document, kernel and environment."""

    def execute_it(
        self: Any, document: Any, kernel: str, settings: Any, source: Any, target: Any
    ) -> Any:
        cells = [
            (cell.source, cell.metadata.get("tags"), cell.metadata.get("submarine"))
            for cell in document.cells
        ]
        asked = (settings.headless().to_environment(), settings.timeout, self._environment())
        return Outcome(json.dumps([cells, kernel, asked, source.url, target.url], default=str))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("submarine_workflows.headless.runner._Run._execute", execute_it)
        return see(*words)


_NOTEBOOK = "run book.ipynb --execute"
for _extra in (
    ("--output", "-o", "out/done.ipynb"),
    ("--parameters", "-p", "n", "3"),
    ("--parameters_raw", "-r", "n", "3"),
    ("--parameters_file", "-f", "values.yaml"),
    ("--kernel", "-k", "other"),
    ("--cells", "--cells", "first"),
    ("--job", "--job", "worker=2"),
    ("--run-id", "--run-id", "nightly-1"),
    ("--lease", "--lease", "10m"),
):
    row("run", _extra[0], *_extra[1:], base=_NOTEBOOK, how=executed)
row("run", "--execute", base="run book.ipynb --timeout 1h --dry-run", how=executed)
row("run", "--notify", "--notify", "tee out/told", base="run gone.ipynb --execute")

# Jobs

row("list", "--state", "--state", "CANCELLED")
row("list", "--name", "--name", "pair")
row("list", "--workflow", "--workflow", "nightly")
row("list", "--workflow-run", "--workflow-run", "nightly-1")
row("list", "--limit", "--limit", "1")
row("list", "--all", base="list --limit 1")
row("show", "--tasks")
row("logs", "--task", "--task", "worker:1")
row("logs", "--all")
row("logs", "--attempt", "--attempt", "e9-a9")
row("logs", "--follow", "-f", base="logs quick --bytes 3")
row("logs", "--stream", "--stream", "stderr")
row("logs", "--tail", "--tail", "1")
row("logs", "--offset", "--offset", "4")
row("logs", "--bytes", "--bytes", "3")
row("metrics", "--task", "--task", "worker:1", base="metrics pair --json")
row("wait", "--quiet")
row("models", "--download", "--download", "first")
row("models", "--show", "--show", "first")
row("models", "--to", "--to", "out/here", base="models quick --download first")


def collected(*words: str) -> str:
    """What a verb on cells gives in a notebook with two of them."""
    frontend = Frontend()
    frontend.collection = CellCollection()
    frontend.collection.add(Cell("a", "x = 1", label="[1]", execution_count=1))
    frontend.collection.add(Cell("b", "y = 1", "model.py", label="[2]", execution_count=2))
    return quiet(execute(list(words), frontend).rendered())


row("script", "--file", "--file", "model.py", how=collected)
row("tensorboard", "--json", base="tensorboard quick", how=collected)
for _verb in ("cells", "script", "clear"):
    row(_verb, "--json", how=collected)
row("config", "--profile", "--profile", "other")


@effect("config", "--yes", "--forget")
def _(patch: pytest.MonkeyPatch) -> None:
    """Without an answer nothing is trusted; it is until it is forgotten."""
    Path("project").mkdir()
    file = Path("project", "submarine.toml")
    file.write_text('user = "ada"\n')
    try:
        assert "exit 2" in see("config", "trust", str(file))
        assert "is trusted until" in see("config", "trust", str(file), "--yes")
        assert "trusted already" in see("config", "trust", str(file))
        assert "not trusted any more" in see("config", "trust", str(file), "--forget")
        assert "exit 2" in see("config", "trust", str(file))
    finally:
        shutil.rmtree("project")


@effect("workflow with-values", "--json")
def _(patch: pytest.MonkeyPatch) -> None:
    plain = see("workflow", "with-values", "list")
    asked = see("workflow", "with-values", "--json", "list")
    assert plain != asked == see("list", "--json")


@effect("", "--version")
def _(patch: pytest.MonkeyPatch) -> None:
    assert "submarine " in see("--version")


@effect("wait", "--on-interrupt")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TerminalFrontend, "watch", interrupted)
    see("run", "sleep.py", "--name", "held")
    assert "goes on" in see("wait", "held")
    assert "was cancelled" in see("wait", "held", "--on-interrupt", "cancel")


@effect("rerun", "--wait", "--on-interrupt")
def _(patch: pytest.MonkeyPatch) -> None:
    assert "SUCCEEDED" in see("rerun", "quick", "--wait")
    assert "SUCCEEDED" not in see("rerun", "quick")
    patch.setattr(TerminalFrontend, "watch", interrupted)
    see("run", "sleep.py", "--name", "again")
    see("cancel", "again", "--yes")
    assert "goes on" in see("rerun", "again", "--wait")
    assert "was cancelled" in see("rerun", "again", "--wait", "--on-interrupt", "cancel")
    for job in Session(load_config({}).profile).jobs():
        if job.name == "again" and not job.state.ended:
            see("cancel", job.job_id, "--yes")


row("rerun", "--resume")
row("data put", "--replace", base="data put letters plain.py")


def removed(*words: str) -> str:
    """What ``data rm`` gives while a job reads the data."""
    see("data", "put", "held", "quick.py")
    see("run", "sleep.py", "--name", "reads", "--input", "A=data:held")
    try:
        return see(*words)
    finally:
        see("cancel", "reads", "--yes")


row("data rm", "--force", base="data rm held", how=removed)
row("data rm", "--json", base="data rm nothing")
row("gc", "--older-than", "--older-than", "1m")


@effect("env rm", "--force")
def _(patch: pytest.MonkeyPatch) -> None:
    """The files of an environment that jobs of a cluster may use."""
    cache = STATE / "jobs" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "python-env-0123.tar.gz").touch()
    patch.setattr(PackedEnvironments, "in_use", lambda self: {"python-env-0123"})
    assert "Wait for their end, or add --force" in see("env", "rm", "0123")
    assert "0123 is removed" in see("env", "rm", "0123", "--force")


@effect("gc", "--yes")
def _(patch: pytest.MonkeyPatch) -> None:
    cache = STATE / "jobs" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "python-env-4567.tar.gz").touch()
    (cache / "python-env-4567.used").touch()
    os.utime(cache / "python-env-4567.used", (1, 1))
    assert "Nothing was removed" in see("gc")
    assert "1 environment is removed" in see("gc", "--yes")


row("zeppelin migrate", "--check", base="zeppelin migrate notes")
row("zeppelin migrate", "--json", base="zeppelin migrate notes --check")
row("list", "--user", "--user", "another")


@effect("cancel", "--yes", "--why")
def _(patch: pytest.MonkeyPatch) -> None:
    see("run", "sleep.py", "--name", "foreign")
    patch.setattr("submarine_jobs.client.job_ownership.user_of", lambda _: "another")
    assert "Add --yes" in see("cancel", "foreign")
    assert "ended: CANCELLED" in see("cancel", "foreign", "--yes", "--why", "too slow")
    assert "too slow" in see("show", "foreign")


@effect("save", "--yes", "--name", "--json")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("submarine_jobs.client.job_ownership.user_of", lambda _: "another")
    assert "Add --yes" in see("save", "quick")
    assert "version v" in see("save", "quick", "--yes")
    name = f"best{time.monotonic_ns()}"
    assert f"version {name} is saved" in see("save", "quick", "--yes", "--name", name)
    assert '"job_id"' in see("save", "quick", "--yes", "--json")


@effect("stack", "--task", "--json")
def _(patch: pytest.MonkeyPatch) -> None:
    assert "its program is not running, so it has no stacks" in see("stack", "quick")
    see("run", "sleep.py", "--name", "asleep", "--worker", "2")
    try:
        deadline = time.monotonic() + 60
        while "ranks 0-1: time.sleep(600)" not in (shown := see("stack", "asleep")):
            assert time.monotonic() < deadline, shown
            time.sleep(0.2)
        shown = see("stack", "asleep", "--task", "worker:0")
        assert "time.sleep(600)" in shown
        assert "ranks 0-1" not in shown
        assert "--task worker names 2 tasks" in see("stack", "asleep", "--task", "worker")
        assert '"frames"' in see("stack", "asleep", "--json")
    finally:
        see("cancel", "asleep", "--yes")


@effect("publish", "--to", "--alias", "--overwrite", "--name", "--json")
def _(patch: pytest.MonkeyPatch) -> None:
    target = f"{os.getcwd()}/models/quick/7"
    saved = f"first{time.monotonic_ns()}"
    see("save", "quick", "--name", saved)
    assert "is published" in see("publish", f"quick@{saved}", "--to", target)
    see("save", "quick", "--name", f"{saved}-2")
    words = ("publish", f"quick@{saved}-2", "--to", target)
    assert "exists already" in see(*words)
    assert "Alias prod names" in see(*words, "--overwrite", "--alias", "prod")
    assert '"already": true' in see(*words, "--json")
    assert "--name has no effect" in see(*words, "--name", "x")


@effect("rerun", "--yes")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("submarine_jobs.client.job_ownership.user_of", lambda _: "another")
    assert "Add --yes" in see("rerun", "quick")
    assert "is submitted" in see("rerun", "quick", "--yes")
    see("wait", "quick")  # The next row saves the model of the newest job of this name.


@effect("tensorboard", "--port")
def _(patch: pytest.MonkeyPatch) -> None:
    orders: list[bytes] = []

    class Pipe(io.BytesIO):
        def write(self, data: Any) -> int:
            orders.append(bytes(data))
            raise KeyboardInterrupt

    class Process:
        stdin, stdout = Pipe(), io.BytesIO()

        def __init__(self, *_: Any, **__: Any) -> None: ...

        def poll(self) -> None: ...

        def wait(self, _: float) -> None: ...

    patch.setattr("submarine_jobs.tensorboards.process.subprocess.Popen", Process)
    see("tensorboard", "quick")
    see("tensorboard", "quick", "--port", "6123")
    assert [json.loads(order)["port"] for order in orders] == [0, 6123]


def examined(*words: str) -> str:
    """The doctor's check of resources for a job, with a cluster that refuses the request."""

    class Yarn:
        def plan(self, asked: Any) -> Any:
            roles = [vars(role.resources) | {"tasks": role.instances} for role in asked.roles]
            return SimpleNamespace(errors=[f"{asked.queue} {roles}"], extra={})

    from submarine_jobs.doctor import Check, DoctorContext
    from submarine_jobs.doctor.capacity import capacity

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DoctorContext, "on_yarn", True)
        patch.setattr(DoctorContext, "yarn", Yarn())
        patch.setattr("submarine_jobs.doctor.checks.CHECKS", [Check("capacity", capacity)])
        patch.setattr("submarine_jobs.commands.doctor._remember", lambda *_: None)
        return see(*words)


for _extra in (
    ("--worker", "3"),
    ("--memory", "3G"),
    ("--vcores", "2"),
    ("--gpu", "1"),
    ("--queue", "ml"),
):
    row("doctor", _extra[0], *_extra, base="doctor --backend yarn", how=examined)
row("doctor", "--node", base="doctor --backend local")


def probed(*words: str) -> str:
    """The nodes that the doctor would probe, of a cluster with 25."""
    from submarine_jobs.doctor import DoctorContext, NodeRow
    from submarine_runtime.yarn import Node, Size

    none = Size()
    known = [
        Node(f"n{number}", f"n{number}:1", "/r", "RUNNING", (), none, none, none)
        for number in range(10, 35)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DoctorContext, "on_yarn", True)
        patch.setattr("submarine_jobs.doctor.checks.CHECKS", [])
        patch.setattr("submarine_jobs.commands.doctor._remember", lambda *_: None)
        patch.setattr("submarine_jobs.doctor.running_nodes", lambda _: known, raising=False)
        patch.setattr(
            "submarine_jobs.doctor.probe_nodes",
            lambda _session, _context, nodes, _say: [NodeRow(node.name) for node in nodes],
            raising=False,
        )
        return see(*words)


row("doctor", "--nodes", base="doctor --backend yarn", how=probed)
row("doctor", "--node-list", "--node-list", "n12,n30", base="doctor --backend yarn", how=probed)
row("doctor", "--all", base="doctor --nodes --backend yarn", how=probed)
row("doctor", "--yes", base="doctor --all --backend yarn", how=probed)


def fixed(*words: str) -> str:
    """The doctor's findings of a node that counts virtual memory, and what it writes."""
    from submarine_jobs.doctor import Check, DoctorContext, warning

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DoctorContext, "on_yarn", True)
        found = [Check("memory checks", lambda _: warning("Killed.", "Switch it off."))]
        patch.setattr("submarine_jobs.doctor.checks.CHECKS", found)
        patch.setattr("submarine_jobs.commands.doctor._remember", lambda *_: None)
        return see(*words)


_FIX = "doctor --backend yarn --fix --items all --script out/a.sh"
row("doctor", "--fix", base="doctor --backend yarn", how=fixed)
row("doctor", "--items", "--items", "1", base=_FIX.replace(" --items all", ""), how=fixed)
row("doctor", "--script", "--script", "out/b.sh", base=_FIX, how=fixed)
row("doctor", "--stop-driver")

# Kernels, notebooks and the minicluster

row("kernel check", "--name", "--name", "gone")


def uninstalled(*words: str) -> str:
    """What ``kernel uninstall`` gives where two kernels are installed."""
    see("kernel", "install", "--user")
    see("kernel", "install", "--user", "--name", "second")
    return see(*words)


row("kernel uninstall", "--name", "--name", "second", how=uninstalled)
row("kernel uninstall", "--json", how=uninstalled)
row("kernel install", "--display-name", "--display-name", "Mine")
row("kernel install", "--user", base="kernel install --name mine")
row("kernel install", "--sys-prefix", base="kernel install --prefix out")
row("kernel install", "--prefix", "--prefix", "out/other", base="kernel install --name mine")
row("kernel install", "--name", "--name", "mine")
row("kernel install", "--set", "--set", "queue=ml")
row("kernel install", "--default", "--default", "gpu=1")
for _extra in (
    ("--memory", "3G"),
    ("--vcores", "2"),
    ("--gpu", "1"),
    ("--queue", "ml"),
    ("--python-env", "auto"),
    ("--profile", "other"),
    ("--priority", "3"),
    ("--docker-image", "i:1"),
    ("--node-label", "fast"),
    ("--node", "node1"),
    ("--rack", "rack1"),
    ("--avoid-node", "node1"),
    ("--idle-timeout", "2h"),
    ("--start-timeout", "2m"),
    ("--backend", "yarn"),
):
    row(
        "kernel install",
        _extra[0],
        *_extra,
        base="kernel install --prefix out --name gpu4"
        + ("" if _extra[0] == "--memory" else " --memory 2G"),
    )


def started(*words: str) -> str:
    """The specification of the notebook server that the words start."""

    def submit(self: Session, asked: Any, *_: Any, **__: Any) -> Any:
        print(asked.to_bytes().decode())
        raise click.exceptions.Exit(0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "submit", submit)
        return see(*words)


for _extra in (
    ("--memory", "3G"),
    ("--vcores", "2"),
    ("--gpu", "1"),
    ("--queue", "ml"),
    ("--node-label", "fast"),
    ("--docker_image", "i:1"),
    ("--python-env", "path:/opt/env"),
    ("--zeppelin-home", "/opt/zeppelin"),
    ("--env", "A=1"),
    ("--secret", "A=quick.py"),
    ("--file", "quick.py"),
    ("--archive", "quick.zip"),
    ("--from", "book"),
    ("--notebooks", "out/kept"),
    ("--quicklink", "Docs=http://host:80"),
    ("--idle", "3h"),
    ("--app", "zeppelin"),
):
    _base = "notebook start" + (" --app zeppelin" if _extra[0] == "--zeppelin-home" else "")
    row("notebook start", _extra[0], *_extra, base=_base, how=started)


@effect("notebook start", "--no-wait", "--json")
def _(patch: pytest.MonkeyPatch) -> None:
    book = Session(load_config({}).profile).job("book")
    patch.setattr("submarine_kernel.notebook_server.commands.submit_notebook", lambda *_: book)
    assert "shows its address" in see("notebook", "start", "--no-wait")
    assert "shows its address" not in see("notebook", "start")
    assert '"job_dir"' in see("notebook", "start", "--no-wait", "--json")


row("notebook list", "--all")


@effect("notebook url", "--forward", "--port")
def _(patch: pytest.MonkeyPatch) -> None:
    from submarine_kernel.notebook_server.access import Endpoint, NotebookAccess

    access = NotebookAccess(Endpoint("JupyterLab", "node", 1, "/lab"), "token")
    patch.setattr("submarine_kernel.notebook_server.commands.access_of", lambda *_: access)
    patch.setattr(
        "submarine_kernel.notebook_server.forwarding.TunnelPorts.start", refuse_port, raising=True
    )
    patch.setattr(
        "submarine_jobs.access.job_directory.JobDirectory.address", lambda _: SimpleNamespace()
    )
    assert "JupyterLab is at" in see("notebook", "url", "book")
    assert "--port 0 cannot be used" in see("notebook", "url", "book", "--forward")
    assert "--port 99 cannot be used" in see("notebook", "url", "book", "--forward", "--port", "99")


async def refuse_port(self: Any, ports: Any) -> Any:
    """As a start of tunnel ports of which none is free."""
    raise OSError(98, "Address already in use")


def configured_cluster(*words: str) -> str:
    """The configuration files of the minicluster that the words start; no daemon is started."""

    class Startup:
        def __init__(self, *_: Any) -> None: ...

        def run(self) -> None: ...

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(Path("out").absolute()))
        patch.setattr("submarine_minicluster.cluster.Startup", Startup)
        patch.setattr(
            "submarine_minicluster.cluster.find_java",
            lambda: SimpleNamespace(home=Path("/java"), version=17),
        )
        patch.setattr(
            "submarine_minicluster.cluster.ensure_jars", lambda version, *_: Path(version)
        )
        patch.setattr("submarine_minicluster.cluster.ensure_kdc", lambda *_: None)
        patch.setattr("secrets.token_urlsafe", lambda _: "password")
        patch.setattr("secrets.token_hex", lambda _: "secret")
        patch.setattr("submarine_minicluster.hadoop.ensure_certificates", lambda *_: None)
        patch.setattr("submarine_minicluster.cluster.write_client_commands", lambda *_, **__: None)
        patch.setattr(
            "submarine_minicluster.lifecycle.planning.choose_ports",
            lambda names, _: {name: 20_000 + number for number, name in enumerate(names)},
        )
        return see(*words)


for _extra in (
    ("--name", "other"),
    ("--hadoop", "3.3.6"),
    ("--nodes", "2"),
    ("--gpus", "1"),
    ("--memory", "4G"),
    ("--vcores", "2"),
    ("--preemption",),
    ("--label", "fast=0"),
    ("--node-expiry", "60"),
    ("--kerberos",),
    ("--ha",),
    ("--encryption-zones",),
    ("--property", "dfs.replication=2"),
):
    row("minicluster start", _extra[0], *_extra, base="minicluster start", how=configured_cluster)
for _extra in (
    ("--https",),
    ("--ticket-lifetime", "60"),
    ("--ticket-renewable", "90"),
    ("--token-renew-interval", "60"),
    ("--token-max-lifetime", "150"),
    ("--proxy-user-privileges",),
    ("--protection", "privacy"),
):
    row(
        "minicluster start",
        _extra[0],
        *_extra,
        base="minicluster start --kerberos",
        how=configured_cluster,
    )
row("minicluster failover", "--name", "--name", "other", base="minicluster failover namenode")
row("minicluster env", "--user", "--user", "alice")
for _verb in ("env", "logs", "status", "stop"):
    row(f"minicluster {_verb}", "--name", "--name", "other")
row("minicluster logs", "-n", "-n", "1", base="minicluster logs namenode")
row("minicluster status", "--all")


@effect("minicluster stop", "--delete-data")
def _(patch: pytest.MonkeyPatch) -> None:
    cluster = Minicluster("brief")
    cluster.layout.make()
    see("minicluster", "stop", "--name", "brief")
    assert cluster.layout.root.is_dir()
    see("minicluster", "stop", "--name", "brief", "--delete-data")
    assert not cluster.layout.root.exists()


# Workflows


@effect("workflow await", "--timeout")
def _(patch: pytest.MonkeyPatch) -> None:
    assert see("workflow", "await", "gone", "--timeout", "0.2s").startswith("exit 124")


row("workflow await", "--parameters", "-p", "n", "quick", base="workflow await {n}.py")
row(
    "workflow await",
    "--profile",
    "--profile",
    "gone",
    base="workflow await hdfs:///x --timeout 0.2s",
)
row("workflow export", "--to", "--to", "azkaban", base="workflow export nightly.flow -o out")
row("workflow export", "--output", "-o", "out/line")
row("workflow export", "--program", "--program", "/opt/submarine")
row("workflow export", "--outputs", "--outputs", "hdfs:///out")
row(
    "workflow export",
    "--include",
    "--include",
    "quick.py",
    base="workflow export nightly.flow --to airflow -o out",
)
row("workflow export", "--notify", "--notify", "tee told")
row("workflow graph", "--svg", "--svg", "out/nightly.svg")
row("workflow history", "--limit", "--limit", "1")
row(
    "workflow holds",
    "--output",
    "--output",
    'train={"accuracy":0.93}',
    base="workflow holds ${train:accuracy}>0.9",
)


@effect("workflow logs", "--follow")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("submarine_workflows.runs.logs.follow_logs", lambda *_: Outcome("until the end"))
    assert "until the end" in see("workflow", "logs", "nightly", "-f")
    assert "until the end" not in see("workflow", "logs", "nightly")


row("workflow logs", "--attempt", "--attempt", "9", base="workflow logs nightly one")
row("workflow logs", "--tail", "--tail", "0")
row(
    "workflow run",
    "--parameters",
    "-p",
    "date",
    "tomorrow",
    base="workflow run nightly.flow --runs out/runs",
)
row("workflow run", "--disable", "--disable", "one")
row("workflow run", "--resume", "--resume", "gone", base="workflow run nightly.flow")
row(
    "workflow run",
    "--notebook",
    "--notebook",
    "book.ipynb",
    base="workflow run cells.flow --dry-run",
)
row("workflow run", "--outputs", "--outputs", "out/done", base="workflow run books.flow --dry-run")


@effect("workflow run", "--max-parallel")
def _(patch: pytest.MonkeyPatch) -> None:
    words = ("workflow", "run", "together.flow")
    beside, after = see(*words), see(*words, "--max-parallel", "1")
    assert beside.index("two: RUNNING") < beside.index("one: SUCCEEDED")
    assert after.index("two: RUNNING") > after.index("one: SUCCEEDED")


row("workflow run", "--timeout", "--timeout", "0.2s", base="workflow run slow.flow")
row(
    "workflow run",
    "--failure-action",
    "--failure-action",
    "finishPossible",
    base="workflow run failing.flow",
)
row("workflow run", "--notify", "--notify", "tee out/told", base="workflow run failing.flow")
row("workflow run", "--dry-run", base="workflow run nightly.flow")
row(
    "workflow run",
    "--on-interrupt",
    "--on-interrupt",
    "detach",
    base="workflow run books.flow --dry-run",
)
row("workflow run", "--scheduled", base="workflow run nightly.flow --runs out/runs")
row("workflow run", "--runs", "--runs", "out/runs", base="workflow run nightly.flow")


@effect("workflow run", "--concurrent")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("submarine_workflows.runs.folders.RunFolder.alive", True)
    see("workflow", "run", "nightly.flow", "--concurrent", "ignore")
    assert "is already running" in see("workflow", "run", "nightly.flow")
    assert "exit 0" in see("workflow", "run", "nightly.flow", "--concurrent", "ignore")


@effect("workflow run", "--wait")
def _(patch: pytest.MonkeyPatch) -> None:
    words = ["workflow", "run", "held.flow"]
    notebook = RecordingFrontend("notebook", answer=False)
    assert execute(words, notebook).value["ended"] is None
    Path("go").touch()  # the nodes of both runs wait for it
    assert execute([*words, "--concurrent", "ignore", "--wait"], notebook).value["ended"]


def submitted(*words: str) -> str:
    """What an Azkaban is asked for, and what it then holds."""
    here = Path.cwd()
    with pytest.MonkeyPatch.context() as patch:
        shutil.rmtree("there", ignore_errors=True)
        shutil.copytree("flows", "there")
        with configured(here / "there", patch) as azkaban:
            if words[1] == "unschedule":
                see("workflow", "submit", "nightly.flow", "--schedule")
            other = next((word for word in words if word.startswith("http://127.0.0.1:1")), "")
            text = see(*words).replace(other or "-", "-")
            held = _held(azkaban)
        patch.chdir(here)
    return quiet(text + held)


def _held(azkaban: azkaban_server.Azkaban) -> str:
    projects = [
        (one.name, sorted(one.files), sorted(one.flows)) for one in azkaban.projects.values()
    ]
    schedules = [(one.project.name, one.fields) for one in azkaban.schedules.values()]
    calls = [
        re.sub(r"session\.id=[^&]*", "", f"{address} {body.decode(errors='replace')}")
        for address, body in azkaban.raw
        if b"ajax=executeFlow" in body or "ajax=executeFlow" in address
    ]
    return json.dumps([projects, schedules, calls], default=str)


for _extra in (
    ("--run",),
    ("--schedule",),
    ("--project", "other"),
    ("--include", "*.txt"),
    ("--url", "http://127.0.0.1:1"),
    ("--to", "other"),
):
    row("workflow submit", _extra[0], *_extra, base="workflow submit nightly.flow", how=submitted)
for _extra in (
    ("--parameters", "-p", "date", "2026-11-23"),
    ("--failure-action", "--failure-action", "finishPossible"),
    ("--concurrent", "--concurrent", "ignore"),
):
    row(
        "workflow submit",
        _extra[0],
        *_extra[1:],
        base="workflow submit nightly.flow --schedule",
        how=submitted,
    )
for _extra in (("--project", "other"), ("--url", "http://127.0.0.1:1"), ("--from", "other")):
    row(
        "workflow unschedule", _extra[0], *_extra, base="workflow unschedule nightly", how=submitted
    )
row("workflow submit", "--json", base="workflow submit nightly.flow", how=submitted)
row("workflow unschedule", "--json", base="workflow unschedule nightly", how=submitted)


@effect("workflow submit", "--replace")
def _(patch: pytest.MonkeyPatch) -> None:
    shutil.copytree("flows", "again")
    with configured(Path("again").absolute(), patch):
        see("workflow", "submit", "nightly.flow", "--project", "all")
        words = ("workflow", "submit", "weekly.flow", "--project", "all")
        assert "would remove" in see(*words)
        assert "Uploaded weekly" in see(*words, "--replace")


# Zeppelin


def installed(*words: str) -> str:
    """What ``zeppelin install`` writes into a Zeppelin."""

    shutil.rmtree("zeppelin/interpreter/submarine", ignore_errors=True)
    told = see(*words)
    setting = Path("zeppelin/interpreter/submarine/interpreter-setting.json")
    return told + (setting.read_text() if setting.is_file() else "none")


def checked(*words: str) -> str:
    """What ``zeppelin check`` gives for one check, without starting an interpreter."""
    from submarine_jobs.doctor import Result, Status

    with pytest.MonkeyPatch.context() as patch:
        result = Result("python", Status.OK, "It is there.", "", 0.0)
        patch.setattr("submarine_zeppelin.installation.check_installation", lambda _: [result])
        return see(*words)


_INSTALL = "zeppelin install zeppelin"
row("zeppelin check", "--json", base="zeppelin check zeppelin", how=checked)
row("zeppelin install", "--python", "--python", "/usr/bin/python3", base=_INSTALL, how=installed)
row("zeppelin install", "--set", "--set", "submarine.yarn.queue=ml", base=_INSTALL, how=installed)
row("zeppelin install", "--json", base=_INSTALL, how=installed)


@effect("zeppelin uninstall", "--json")
def _(patch: pytest.MonkeyPatch) -> None:
    see("zeppelin", "install", "zeppelin")
    assert '"removed"' in see("zeppelin", "uninstall", "zeppelin", "--json")


@effect("zeppelin install", "--replace")
def _(patch: pytest.MonkeyPatch) -> None:
    former = Path("former/interpreter/submarine")
    former.mkdir(parents=True)
    Path("former/conf").mkdir()
    (former / "submarine-interpreter-0.10.1.jar").touch()
    assert "--replace" in see("zeppelin", "install", "former")
    assert "Installed" in see("zeppelin", "install", "former", "--replace")


row(
    "zeppelin export-note",
    "--output",
    "-o",
    "out/b.ipynb",
    base="zeppelin export-note note.zpln --force",
)
row("zeppelin export-note", "--force", base="zeppelin export-note note.zpln -o mine.ipynb")

# The lines of cells

_FLOW = "nodes:\n  - {name: one, type: noop}\n"


def cell(*words: str) -> str:
    """What a workflow cell of a notebook gives."""
    shutil.rmtree("out", ignore_errors=True)
    try:
        made = execute(["workflow", *words], Frontend(), CellBody(_FLOW, 2, "[1]"))
    except UsageError as error:
        return str(error)
    return quiet(f"{made.exit_code} {made.rendered()} {Path('digits.flow').read_text()}")


for _extra in (
    ("--schedule", "0 30 2 ? * *"),
    ("--run",),
    ("--to", "cron"),
    ("--json",),
):
    row("%% workflow", _extra[0], *_extra, base="digits", how=cell)


@effect("%% workflow", "--timezone")
def _(patch: pytest.MonkeyPatch) -> None:
    words = ("digits", "--schedule", "0 30 2 ? * *")
    assert cell(*words, "--timezone", "Asia/Tokyo") != cell(*words)


# predict, in a shell and as a cell

_FUNCTIONS = "def predict(batch):\n    return batch\n"


def _predicted(*words: str, body: CellBody | None = None) -> str:
    """The options and the program that a prediction submits."""
    found: list[str] = []
    command = importlib.import_module("submarine_jobs.commands.predict.command")

    def run_job(options: object, _frontend: Frontend, find: Callable[[], Any]) -> Outcome:
        bundle = find().bundle
        found.extend([repr(options), bundle.files[bundle.program].decode()])
        return Outcome("", value=None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "run_job", run_job)
        execute(list(words), RecordingFrontend(), body)
    return quiet("\n".join(found))


def _in_cell(*words: str) -> str:
    body = CellBody(_FUNCTIONS, 2, "[1]")
    if "--program" in words:  # The functions are in the cell: a file is refused.
        with pytest.raises(UsageError, match="--program names a file"):
            _predicted(*words, body=body)
        return "refused"
    return _predicted(*words, body=body)


def _shown(*words: str) -> str:
    return quiet(
        execute(list(words), RecordingFrontend(), CellBody(_FUNCTIONS, 2, "[1]")).rendered()
    )


_PREDICT = "predict --input x=/data --output /scores"
for _option, *_typed in (
    ("--input", "--input", "y=/more"),
    ("--columns", "--columns", "a"),
    ("--keys", "--keys", "id"),
    ("--batch-size", "--batch-size", "7"),
    ("--batch-format", "--batch-format", "pandas"),
    ("--format", "--format", "csv"),
    ("--part-size", "--part-size", "1M"),
    ("--name", "--name", "other"),
    ("--worker", "--worker", "2"),
    ("--memory", "--memory", "3G"),
    ("--vcores", "--vcores", "2"),
    ("--gpu", "--gpu", "2"),
    ("--worker_resources", "--worker_resources", "memory=3G"),
    ("--worker_docker_image", "--worker_docker_image", "other:1"),
    ("--timeout", "--timeout", "2h"),
    ("--gang-timeout", "--gang-timeout", "1m"),
    ("--gang-retries", "--gang-retries", "1"),
    ("--max-restarts", "--max-restarts", "1"),
    ("--heartbeat", "--heartbeat", "2s"),
    ("--lost-after", "--lost-after", "1m"),
    ("--param", "--param", "lr=0.1"),
    ("--file", "--file", "quick.py:other.py"),
    ("--archive", "--archive", "hdfs:///a.zip"),
    ("--localization", "--localization", "hdfs:///a:b"),
    ("--with", "--with", "x"),
    ("--python-env", "--python-env", "path:/opt/env"),
    ("--docker_image", "--docker_image", "other:1"),
    ("--env", "--env", "A=1"),
    ("--secret", "--secret", "A=quick.py"),
    ("--queue", "--queue", "ml"),
    ("--keytab", "--keytab", "quick.py", "--principal", "ann@EXAMPLE.ORG"),
    ("--principal", "--principal", "ann@EXAMPLE.ORG", "--keytab", "quick.py"),
    ("--distribute_keytab", "--distribute_keytab"),
    ("--share", "--share", "view:bob"),
    ("--priority", "--priority", "3"),
    ("--node-label", "--node-label", "fast"),
    ("--node", "--node", "node1"),
    ("--rack", "--rack", "rack1"),
    ("--spread", "--spread"),
    ("--avoid-node", "--avoid-node", "node1"),
    ("--network-interface", "--network-interface", "ib0"),
    ("--gpu-topology", "--gpu-topology", "pack"),
    ("--profile", "--profile", "other"),
    ("--backend", "--backend", "local"),
    ("--conf", "--conf", "hdfs_wait_minutes=3"),
    ("--quicklink", "--quicklink", "Docs=http://host:80"),
    ("--wait", "--wait"),
    ("--on-interrupt", "--on-interrupt", "cancel"),
    ("--dry-run", "--dry-run"),
    ("--force", "--force"),
    ("--verbose", "--verbose"),
):
    row("predict", _option, *_typed, base=_PREDICT + " --program score.py", how=_predicted)
    row("%% predict", _option, *_typed, base=_PREDICT, how=_in_cell)
for _verb, _how in (("predict", see), ("%% predict", _shown)):
    _program = " --program score.py" if _verb == "predict" else ""
    row(_verb, "--json", base=f"{_PREDICT}{_program} --dry-run", how=_how)


@effect("predict", "--output", "--program")
def _(patch: pytest.MonkeyPatch) -> None:
    assert "--output" in see("predict", "--input", "x=/data", "--program", "score.py")
    words = ("predict", "--input", "x=/data", "--output", "/elsewhere")
    assert "/elsewhere" in _predicted(*words, "--program", "score.py")
    assert "score.py" in see(*words, "--program", "gone-score.py") + see(*words)


@effect("%% predict", "--output", "--program")
def _(patch: pytest.MonkeyPatch) -> None:
    words = ("predict", "--input", "x=/data", "--output", "/elsewhere")
    assert "/elsewhere" in _in_cell(*words)
    assert _in_cell(*words, "--program", "score.py") == "refused"


@effect("%%", "--version")
def _(patch: pytest.MonkeyPatch) -> None:
    assert execute(["--version"], Frontend(), CellBody("", 2, "[1]")).text.startswith("submarine ")


@effect("%%submarine", "--file", "--only")
def _(patch: pytest.MonkeyPatch) -> None:
    from submarine_jobs.program import Cell, build_bundle

    assert parse_options("--only").only != parse_options("").only
    assert (
        "model.py" in build_bundle([Cell("a", "x", filename="model.py")], program="model.py").files
    )


# Options that all verbs have


def elsewhere(*words: str) -> str:
    """What a client gives that knows no job and has no cluster but those of ``submarine.toml``."""
    shutil.rmtree("fresh", ignore_errors=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUBMARINE_STATE_DIR", str(Path("fresh").absolute()))
        if "--profile" not in words:
            patch.delenv("SUBMARINE_BACKEND")
            patch.setenv("SUBMARINE_JOB_ROOT", str((STATE / "jobs").absolute()))
        if "other" in words:
            patch.delenv("SUBMARINE_JOB_ROOT", raising=False)
        return see(*words)


_EVERYWHERE = {
    "--json": (("--json",), see),
    "--profile": (("--profile", "other"), elsewhere),
    "--backend": (("--backend", "local"), elsewhere),
    "--runs": (("--runs", "out/none"), see),
}
for _verb, _base, _how in (
    ("kernel install", "kernel install --prefix out --name gpu4 --memory 2G --gpu 1", see),
    ("notebook start", "notebook start --gpu 1", started),
):
    row(_verb, "--idle-gpu", "--idle-gpu", "1h:end", base=_base, how=_how)
row("notebook start", "--profile", "--profile", "other", how=started)
row("notebook start", "--backend", "--backend", "yarn", how=started)
for _verb, _option in OPTIONS:
    if (_verb, _option) not in ROWS and _option in _EVERYWHERE and _verb in BASES:
        _words, _how = _EVERYWHERE[_option]
        row(_verb, _option, *_words, how=_how)

# The world that the commands find

STATE = Path("state")
_PROGRAM = """\
import os, sys
print("one\\ntwo\\nthree of", os.environ["SUBMARINE_INDEX"])
print("wrong", file=sys.stderr)
for name in ("MODEL", "CHECKPOINT", "TENSORBOARD"):
    open(os.environ[f"SUBMARINE_{name}_DIR"] + "/file", "w").write(name)
open("left.txt", "w").write("left")
"""


@pytest.fixture(scope="module", autouse=True)
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working directory with programs, notebooks, workflows and ended jobs."""
    here = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            if name.startswith(("SUBMARINE_", "HADOOP_", "JUPYTER_", "YARN_")):
                patch.delenv(name)
        patch.chdir(here)
        patch.setattr(sys, "prefix", str(here / "prefix"))  # `kernel install` writes below it.
        patch.setenv("HOME", str(here / "home"))
        patch.setenv("XDG_CONFIG_HOME", str(here / "config"))
        patch.setenv("XDG_DATA_HOME", str(here / "data"))
        patch.setenv("XDG_STATE_HOME", str(here / "home" / "state"))
        patch.setenv("SUBMARINE_STATE_DIR", str(here / STATE))
        patch.setenv("SUBMARINE_BACKEND", "local")
        _write(here)
        see("run", "plain.py", "--name", "single")
        with pytest.MonkeyPatch.context() as nightly:
            nightly.setenv("SUBMARINE_WORKFLOW", "nightly")
            nightly.setenv("SUBMARINE_WORKFLOW_RUN", "nightly-1")
            see("run", "quick.py", "--name", "node")
        see("run", "quick.py")
        see("run", "quick.py", "--name", "pair", "--worker", "2")
        see("run", "quick.py", "--name", "book", "--role", "notebook=1", "--worker", "0")
        for name in ("single", "node", "quick", "pair", "book"):
            assert "exit 0" in see("wait", name, "--quiet")
        see("save", "quick", "--name", "first")
        see("data", "put", "letters", "quick.py")
        see("workflow", "run", "nightly.flow")
        see("workflow", "run", "nightly.flow")
        see("zeppelin", "install", "zeppelin")
        see("kernel", "install", "--user")
        yield here
        for record in Session(load_config({}).profile).jobs():
            if not record.state.ended:
                see("cancel", record.job_id, "--yes")


def _write(here: Path) -> None:
    (here / "config" / "jupyter-submarine").mkdir(parents=True)
    (here / "config" / "jupyter-submarine" / "submarine.toml").write_text(
        f'[profiles.other]\nqueue = "other"\njob_root = "{here / STATE}/jobs"\nbackend = "local"\n'
    )
    (here / "home").mkdir()
    (here / "quick.py").write_text(_PROGRAM)
    (here / "plain.py").write_text("print('plain')\n")
    (here / "score.py").write_text(_FUNCTIONS)
    (here / "sleep.py").write_text("import time\ntime.sleep(600)\n")
    (here / "wrong.py").write_text("import this_is_not_there\n")
    (here / "held.sh").write_text("until [ -e go ]; do sleep 0.1; done\n")
    (here / "values.yaml").write_text("n: 3\n")
    shutil.make_archive("quick", "zip", here, "quick.py")
    book = notebook(("n = 1", ["parameters"]), ("print(n)", ["first"]), "%submarine run a")
    nbformat.write(book, here / "book.ipynb")
    nbformat.write(notebook("x = 1"), here / "mine.ipynb")
    flows = {
        "nightly": "schedule: 0 30 2 ? * *\nconfig: {date: today}\nnodes:\n"
        "  - {name: one, type: command, config: {command: 'echo ${date}'}}\n",
        "weekly": "nodes:\n  - {name: one, type: command, config: {command: 'echo week'}}\n",
        "books": "nodes:\n  - {name: one, notebook: book.ipynb}\n",
        "cells": "nodes:\n  - {name: one, cells: [first]}\n",
        "slow": "nodes:\n  - {name: one, type: command, config: {command: 'sleep 1'}}\n",
        "held": "nodes:\n  - {name: one, type: command, config: {command: 'sh held.sh'}}\n",
        "failing": "nodes:\n  - {name: one, type: command, config: {command: 'false'}}\n"
        "  - {name: two, type: command, config: {command: 'sleep 0.5'}}\n"
        "  - {name: three, type: command, config: {command: 'true'}, dependsOn: [two]}\n",
        "together": "nodes:\n"
        + "".join(
            f"  - {{name: {name}, type: command, config: {{command: 'sleep 1'}}}}\n"
            for name in ("one", "two")
        ),
    }
    (here / "flows").mkdir()
    (here / "flows" / "note.txt").write_text("note")
    for name, text in flows.items():
        (here / f"{name}.flow").write_text(text)
    for name in ("nightly", "weekly"):
        (here / "flows" / f"{name}.flow").write_text(flows[name])
    for name in ("interpreter", "conf"):
        (here / "zeppelin" / name).mkdir(parents=True)
    note = Path(__file__).parents[3] / "examples" / "zeppelin" / "digits.zpln"
    shutil.copy(note, here / "note.zpln")
    (here / "notes").mkdir()
    shutil.copy(note, here / "notes" / "note.zpln")
    layout = Minicluster("default").layout
    layout.make()
    names = port_names(1)
    saved = SavedCluster(Settings(), "/java", {name: 20_000 + n for n, name in enumerate(names)})
    saved.write(layout.cluster_file)
    second = Minicluster("second").layout
    second.make()
    saved.write(second.cluster_file)
    layout.log("namenode").parent.mkdir(parents=True, exist_ok=True)
    layout.log("namenode").write_text("one\ntwo\n")


def test_every_option_has_a_row_and_every_row_an_option() -> None:
    missing = sorted(f"{verb} {option}" for verb, option in set(OPTIONS) - set(ROWS))
    assert missing == [], "Add a row that shows the effect of each of these options."
    gone = sorted(f"{verb} {option}" for verb, option in set(ROWS) - set(OPTIONS))
    assert gone == [], "Remove the rows of these options: the grammar does not have them."


@pytest.mark.parametrize(
    ("verb", "option"), [pytest.param(*one, id=" ".join(one).strip()) for one in sorted(ROWS)]
)
def test_the_option_has_an_effect(verb: str, option: str) -> None:
    ROWS[verb, option].check()
