"""The runner of `make test`: budgets are kept, failures are reported, nothing is left running."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SCRIPTS)
    spec = importlib.util.spec_from_file_location("run_parts", SCRIPTS / "run_parts.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["run_parts"] = module
    spec.loader.exec_module(module)
    return module


def test_a_part_fails_when_any_of_its_commands_does(parts, tmp_path):
    part = parts.Part("p", 60, (("false",), ("touch", str(tmp_path / "ran"))))
    assert parts.run_part(part, tmp_path).result == "false failed (1)"
    assert (tmp_path / "ran").exists()
    assert parts.run_part(parts.Part("p", 60, (("true",),)), tmp_path).result == "ok"


def test_a_part_that_takes_too_long_is_ended(parts, tmp_path):
    began = time.monotonic()
    outcome = parts.run_part(parts.Part("p", 0, (("sleep", "30"),)), tmp_path)
    assert outcome.result == "sleep too slow"
    assert time.monotonic() - began < 15


def test_what_a_part_leaves_running_is_ended_and_told(parts, tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "ENDING", 1)

    def starts(seconds, words=""):
        """A command that ends once what it leaves behind has its own words and environment."""
        there = tmp_path / str(seconds)
        left = f"{words} setsid sh -c 'touch {there}; exec sleep {seconds}' >/dev/null 2>&1 &"
        return ("sh", "-c", f"{left} while [ ! -e {there} ]; do sleep 0.05; done")

    mark = f"env -i PATH=/usr/bin:/bin SUBMARINE_MINICLUSTER={tmp_path}/x/test"
    outcome = parts.run_part(parts.Part("p", 60, (starts(33), starts(34, mark))), tmp_path)
    assert outcome.result.startswith("left 2 processes: ")
    assert "sleep 33" in outcome.result
    assert "sleep 34" in outcome.result
    assert parts.end_leftovers(tmp_path) == []
    # What ends by itself in that time was not left.
    assert parts.run_part(parts.Part("p", 60, (starts(0.5),)), tmp_path).result == "ok"


def test_parts_beside_others_run_in_order_at_low_priority(parts, tmp_path, capfd):
    scratch, beside = tmp_path / "scratch", tmp_path / "beside"
    scratch.mkdir()
    beside.mkdir()
    ended = tmp_path / "ended"
    wait = ("sh", "-c", f"nice; sleep 1; touch {ended}")
    first = parts.Part("first", 60, (wait,), beside=True, niceness=5)
    second = parts.Part("second", 60, (("test", "-e", str(ended)),), beside=True)
    front = parts.Part("front", 60, (("test", "!", "-e", str(ended)),))
    outcomes = parts.run_plan((first, second, front), scratch, beside)
    assert [(one.name, one.result) for one in outcomes] == [
        ("first", "ok"), ("second", "ok"), ("front", "ok"),
    ]  # fmt: skip
    shown = capfd.readouterr().out
    level = os.nice(0) + 5
    assert f"== first: sh -c nice; sleep 1; touch {ended}\n{min(level, 19)}\n" in shown
    parts.print_table(outcomes)
    table = capfd.readouterr().out
    assert table.count("(beside the others)") == 2
    assert float(table.split("total")[1].split()[0]) < outcomes[0].seconds


def test_interrupt_ends_parts_beside_others(parts, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    run_part = parts.run_part
    monkeypatch.setattr(
        parts, "run_part", lambda part, *more: (run_part if part.beside else interrupt)(part, *more)
    )
    slow = parts.Part("slow", 60, (("sleep", "31"), ("sleep", "32")), beside=True)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        parts.run_plan((slow, slow, parts.Part("p", 60, ())), tmp_path, tmp_path)
    assert time.monotonic() - began < 25


def test_ci_calls_make_test_and_every_folder_of_tests_has_a_part(parts):
    root = SCRIPTS.parent
    assert "make test" in (root / ".ci" / "run").read_text()
    assert os.access(root / ".ci" / "run", os.X_OK)
    for plan in ("test", "test-full"):
        words = [
            word for part in parts.PLANS[plan] for command in part.commands for word in command
        ]
        left_out = [word.partition("=")[2] for word in words if word.startswith("--ignore=")]
        assert "tests" in words
        assert set(left_out) <= set(words)
    budgets = [part.budget for part in parts.PLANS["test"] if not part.beside]
    assert sum(budgets) + parts.SETUP_BUDGET <= 45 * 60


@pytest.mark.parametrize(
    ("tests", "result", "again"),
    [
        ("def test_once(): succeeds_at_the_second_try()", "ok", ("test_it.py::test_once",)),
        ("def test_never(): assert False", "python failed (1)", ()),
        ("def test_always(): pass", "ok", ()),
        (
            "import pytest\n@pytest.fixture(scope='module')\n"
            "def server(): succeeds_at_the_second_try()\n"
            "@pytest.mark.parametrize('n', range(4))\ndef test_all(n, server): pass",
            "ok",
            tuple(f"test_it.py::test_all[{n}]" for n in range(4)),
        ),
        ("syntax error", "python failed (2)", ()),
    ],
)
def test_few_failures_of_real_programs_get_a_reported_second_try(
    parts, tmp_path, capfd, monkeypatch, tests, result, again
):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # Loading plugins takes a second.
    first = tmp_path / "there-was-a-first-try"
    (tmp_path / "test_it.py").write_text(
        "import os\nfirst = os.path.exists('there-was-a-first-try')\n"
        f"def succeeds_at_the_second_try(): assert first\n{tests}\n"
    )
    (tmp_path / "conftest.py").write_text(
        f"def pytest_sessionfinish(): open({str(first)!r}, 'w').close()\n"
    )
    command = sys.modules["plans"].pytest("test_it.py", "-p", "no:playwright", "--rootdir", ".")
    outcome = parts.run_part(parts.Part("p", 60, (command,), tmp_path, real=True), tmp_path)
    assert (outcome.result, outcome.again) == (result, again)
    parts.print_table([outcome])
    said = capfd.readouterr().out
    assert all(f"p: succeeded at the second try only: {test}" in said for test in again)
    if again:  # what is ours alone has one try
        first.unlink()
        outcome = parts.run_part(parts.Part("p", 60, (command,), tmp_path), tmp_path)
        assert outcome.result == "python failed (1)"


def test_failures_all_over_the_place_are_no_accident(parts, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for number in range(4):
        failing = "import os\ndef test_it(): assert os.path.exists('there-was-a-first-try')\n"
        (tmp_path / f"test_{number}.py").write_text(failing)
    after = "def pytest_sessionfinish(): open('there-was-a-first-try', 'w').close()\n"
    (tmp_path / "conftest.py").write_text(after)
    command = sys.modules["plans"].pytest(".", "-p", "no:playwright", "--rootdir", ".")
    outcome = parts.run_part(parts.Part("p", 60, (command,), tmp_path, real=True), tmp_path)
    assert (outcome.result, outcome.again) == ("python failed (1)", ())
