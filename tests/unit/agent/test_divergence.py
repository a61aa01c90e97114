"""A loss that is no number is reported, with its name and time, once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from submarine_runtime.agent.measurement import Measurement
from submarine_runtime.processes import ProcessTree
from submarine_runtime.protocol import JobRecord, State, TaskRecord
from submarine_runtime.record import Status
from tests.unit.agent import recorded_lines


class Run:
    """A program that prints, and is ten seconds older at each look."""

    def __init__(self, log: Path) -> None:
        record = JobRecord("j", "j", State.RUNNING, tasks=[TaskRecord("worker:0", "worker", 0)])
        self.record, self._log = record, log
        tree = ProcessTree(os.getpid())
        self.measurement = Measurement(tree, Status(record), (str(log),))

    def print(self, text: bytes) -> list[str]:
        """Add to the log and measure; return all warnings."""
        with self._log.open("ab") as file:
            file.write(text)
        self.measurement._began -= 10
        self.measurement.sample()
        return self.warnings

    @property
    def warnings(self) -> list[str]:
        return [event.detail for event in self.record.events if event.kind == "warning"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "stdout")


ADVICE = "look for invalid values in the data, or lower the learning rate."


def test_a_loss_that_becomes_no_number(run: Run) -> None:
    assert run.print(b"val_loss: 0.5\n") == []
    [sentence] = run.print(b"val_loss: nan\n")
    assert sentence.startswith("val_loss was nan ")
    assert sentence.endswith(f" s after the program's start: {ADVICE}")
    assert run.print(b"val_loss: nan\nloss: inf\n") == [sentence]
    assert run.measurement.diverged == sentence


def test_a_first_value_before_the_first_step_is_no_loss(run: Run) -> None:
    assert run.print(b"loss: nan - best_loss: inf - accuracy: nan\n") == []
    assert run.print(b"loss: 0.3\n") == []
    run.measurement.end()
    assert run.warnings == []


def test_a_loss_that_never_was_a_number(run: Run) -> None:
    assert run.print(b"loss: nan\n") == []
    for _ in range(8):
        run.print(b"loss: nan\n")
    assert [words.split(" was")[0] for words in run.warnings] == ["loss"]


def test_a_short_program_whose_loss_never_was_a_number(run: Run) -> None:
    assert run.print(b"loss: nan\n") == []
    run.measurement.end()
    assert len(run.warnings) == 1


@pytest.mark.parametrize(
    ("library", "name"),
    [("TRANSFORMERS_NAN", "grad_norm"), ("LIGHTNING_NAN", "train_loss")],
)
def test_what_libraries_print_of_it(run: Run, library: str, name: str) -> None:
    for _ in range(9):
        run.print(getattr(recorded_lines, library))
    assert [words.split(" was")[0] for words in run.warnings] == [name]


def test_a_gradient_that_overflows_in_half_precision_is_usual(run: Run) -> None:
    run.print(b"{'loss': '0.5', 'grad_norm': 'nan'}\n")
    run.measurement.end()
    assert run.warnings == []
