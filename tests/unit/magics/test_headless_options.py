"""Options that a headless run adds to typed commands, and how a kernel detects such a run."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from submarine_jobs.commands.run import parse_run
from submarine_jobs.errors import ConfigError
from submarine_jobs.model import HEADLESS_ATTENDED, HEADLESS_VARIABLE, Headless
from submarine_magics.commands import with_headless_options
from submarine_magics.commands.headless_options import override_options
from submarine_magics.execution import headless_mode


@pytest.fixture(autouse=True)
def no_runner(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(HEADLESS_VARIABLE, raising=False)
    headless_mode.runner_settings.cache_clear()
    yield
    headless_mode.runner_settings.cache_clear()


def shell(allow_stdin: bool | None, kernel: object = "kernel", kind: str = "execute") -> Any:
    content = {"code": "1"} if allow_stdin is None else {"code": "1", "allow_stdin": allow_stdin}
    parent = {"header": {"msg_type": f"{kind}_request"}, "content": content, "metadata": {}}
    return SimpleNamespace(kernel=kernel, get_parent=lambda: parent)


def set_runner(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
    for name, value in Headless(**settings).to_environment().items():
        monkeypatch.setenv(name, value)


def words(line: str, shell: Any) -> str:
    return " ".join(with_headless_options(line.split(), shell))


def test_the_request_shows_whether_the_session_is_interactive() -> None:
    assert headless_mode.headless_settings(shell(False)) == Headless()
    assert headless_mode.headless_settings(shell(True)) is None
    assert headless_mode.headless_settings(shell(None)) is None
    assert headless_mode.headless_settings(shell(False, kernel=None)) is None
    assert headless_mode.headless_settings(shell(False, kind="complete")) is None


def test_a_program_can_declare_the_session_interactive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HEADLESS_VARIABLE, HEADLESS_ATTENDED)
    assert headless_mode.headless_settings(shell(False)) is None


def test_the_runners_settings_take_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    set_runner(monkeypatch, barrier=True, run_id="a/1")
    found = headless_mode.headless_settings(shell(True))
    assert found is not None
    assert (found.barrier, found.run_id) == (True, "a/1")


def test_an_invalid_variable_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HEADLESS_VARIABLE, "{")
    assert headless_mode.headless_settings(shell(True)) is None


def test_without_a_runner_commands_wait() -> None:
    headless, interactive = shell(False), shell(True)
    assert words("run a --gpu 1", headless) == "run --wait --on-interrupt cancel a --gpu 1"
    assert words("rerun last", headless) == "rerun --wait --on-interrupt cancel last"
    assert words("wait", headless) == "wait --on-interrupt cancel"
    for line in ("run a --gpu 1", "rerun last", "wait last"):
        assert words(line, interactive) == line
    for line in ("list", "show last", "run --help", "cancel last"):
        assert words(line, headless) == line
    typed = parse_run(words("run a --on-interrupt detach", headless).split()[1:])
    assert (typed.wait, typed.on_interrupt) == (True, "detach")


def test_with_a_runner_commands_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    set_runner(monkeypatch, barrier=True, on_interrupt="detach")
    assert words("run a", shell(False)) == "run --on-interrupt detach a"


@pytest.mark.parametrize(
    ("options", "typed", "means"),
    [
        (
            {"gpu": "1", "memory": "4G"},
            "a --worker_resources memory=8G,vcores=2,yarn.io/gpu=2",
            "a --gpu 1 --memory 4G --vcores 2",
        ),
        ({"worker": 3}, "a --num_workers 2 -- --worker 9", "a --worker 3 -- --worker 9"),
        ({"worker_resources": "memory=1G"}, "a --memory 8G --gpu 2", "a --memory 1G"),
        ({"env": {"B": "2"}}, "a --env A=1 --env=B=9", "a --env A=1 --env B=2"),
        ({"secret": ["A"]}, "a --secret A=x --secret=C", "a --secret A --secret C"),
        ({"spread": "false"}, "a --spread", "a"),
        ({"spread": True, "timeout": "2h"}, "a --timeout=1h", "a --spread --timeout 2h"),
        ({}, "a --gpu 2", "a --gpu 2"),
    ],
)
def test_the_runners_job_options_override_typed_ones(
    options: dict[str, Any], typed: str, means: str
) -> None:
    found = parse_run(override_options(options, typed.split()))
    assert found == parse_run(means.split())


def test_an_unknown_job_option_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"'gpus' is not an option .* Did you mean gpu\?"):
        override_options({"gpus": 1}, [])


def test_job_options_apply_to_run_only(monkeypatch: pytest.MonkeyPatch) -> None:
    set_runner(monkeypatch, barrier=True, job_options={"gpu": 1})
    assert "--gpu=1" in words("run a --gpu 2", shell(False))
    assert "--gpu=1" not in words("rerun last", shell(False))
    assert words("list", shell(False)) == "list"
