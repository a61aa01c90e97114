"""What a headless run makes of typed commands, and how a kernel knows that it is one."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from submarine_jobs.commands.run import parse_run
from submarine_jobs.errors import ConfigError
from submarine_jobs.model import ATTENDED, VARIABLE, Headless
from submarine_magics.commands import headless_options as headless_words
from submarine_magics.execution import headless_mode


@pytest.fixture(autouse=True)
def untold(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(VARIABLE, raising=False)
    headless_mode.told_by_runner.cache_clear()
    yield
    headless_mode.told_by_runner.cache_clear()


def shell(allow_stdin: bool | None, kernel: object = "kernel", kind: str = "execute") -> Any:
    content = {"code": "1"} if allow_stdin is None else {"code": "1", "allow_stdin": allow_stdin}
    parent = {"header": {"msg_type": f"{kind}_request"}, "content": content, "metadata": {}}
    return SimpleNamespace(kernel=kernel, get_parent=lambda: parent)


def told(monkeypatch: pytest.MonkeyPatch, **words: Any) -> None:
    for name, value in Headless(**words).to_environment().items():
        monkeypatch.setenv(name, value)


def words(line: str, asking: Any) -> str:
    return " ".join(headless_words.headless_words(line.split(), asking))


def test_the_request_tells_whether_somebody_looks_on() -> None:
    assert headless_mode.headless_of(shell(False)) == Headless()
    assert headless_mode.headless_of(shell(True)) is None
    assert headless_mode.headless_of(shell(None)) is None
    assert headless_mode.headless_of(shell(False, kernel=None)) is None
    assert headless_mode.headless_of(shell(False, kind="complete")) is None


def test_whoever_executes_for_a_person_can_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, ATTENDED)
    assert headless_mode.headless_of(shell(False)) is None


def test_our_runner_is_believed_whatever_the_request_says(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, barrier=True, run_id="a/1")
    found = headless_mode.headless_of(shell(True))
    assert found is not None
    assert (found.barrier, found.run_id) == (True, "a/1")


def test_nonsense_in_the_variable_is_no_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "{")
    assert headless_mode.headless_of(shell(True)) is None


def test_without_our_runner_commands_wait() -> None:
    nobody, somebody = shell(False), shell(True)
    assert words("run a --gpu 1", nobody) == "run --wait --on-interrupt cancel a --gpu 1"
    assert words("rerun last", nobody) == "rerun --wait --on-interrupt cancel last"
    assert words("wait", nobody) == "wait --on-interrupt cancel"
    for line in ("run a --gpu 1", "rerun last", "wait last"):
        assert words(line, somebody) == line
    for line in ("list", "show last", "run --help", "cancel last"):
        assert words(line, nobody) == line
    typed = parse_run(words("run a --on-interrupt detach", nobody).split()[1:])
    assert (typed.wait, typed.on_interrupt) == (True, "detach")


def test_with_our_runner_they_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, barrier=True, on_interrupt="detach")
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
        ({"spread": "false"}, "a --spread", "a"),
        ({"spread": True, "timeout": "2h"}, "a --timeout=1h", "a --spread --timeout 2h"),
        ({}, "a --gpu 2", "a --gpu 2"),
    ],
)
def test_the_runners_job_options_win(options: dict[str, Any], typed: str, means: str) -> None:
    found = parse_run(headless_words.imposed(options, typed.split()))
    assert found == parse_run(means.split())


def test_an_option_that_no_job_has_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'gpus' is no option .* Did you mean gpu\?"):
        headless_words.imposed({"gpus": 1}, [])


def test_job_options_are_for_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, barrier=True, job_options={"gpu": 1})
    assert "--gpu=1" in words("run a --gpu 2", shell(False))
    assert "--gpu=1" not in words("rerun last", shell(False))
    assert words("list", shell(False)) == "list"
