"""The runner of `make test`: budgets are kept, failures are told, nothing is left running."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "scripts"


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
    assert sum(part.budget for part in parts.PLANS["test"]) + parts.SETUP_BUDGET <= 45 * 60


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
def test_few_failures_of_real_programs_get_a_second_try_that_is_told(
    parts, tmp_path, capfd, tests, result, again
):
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


def test_failures_all_over_the_place_are_no_accident(parts, tmp_path):
    for number in range(4):
        failing = "import os\ndef test_it(): assert os.path.exists('there-was-a-first-try')\n"
        (tmp_path / f"test_{number}.py").write_text(failing)
    after = "def pytest_sessionfinish(): open('there-was-a-first-try', 'w').close()\n"
    (tmp_path / "conftest.py").write_text(after)
    command = sys.modules["plans"].pytest(".", "-p", "no:playwright", "--rootdir", ".")
    outcome = parts.run_part(parts.Part("p", 60, (command,), tmp_path, real=True), tmp_path)
    assert (outcome.result, outcome.again) == ("python failed (1)", ())
