"""Scalars in files that libraries write by default: Lightning's tables and event files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from submarine_runtime.agent.measurement import scalar_files
from submarine_runtime.agent.measurement.progress import Progress
from submarine_runtime.agent.measurement.scalar_files import ScalarFiles
from tests.unit.agent.recorded_training import TF1, TF2

#: What Lightning 2.6 wrote: a training, its validation, and one of another model.
TABLE = """\
epoch,hidden,step,train/acc,train_loss,val_loss
2,3.5,43,0.36000001430511475,1.9002501964569092,
2,3.5,47,0.4000000059604645,1.6761115789413452,
2,,47,,,0.9654787182807922
3,,48,,,4.68825101852417
"""


@pytest.fixture(autouse=True)
def search_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scalar_files, "SEARCH_SECONDS", 0.0)


def test_the_table_of_lightning(tmp_path: Path) -> None:
    (tmp_path / "lightning_logs/version_0").mkdir(parents=True)
    table = tmp_path / "lightning_logs/version_0/metrics.csv"
    files = ScalarFiles(str(tmp_path / "none"), (str(tmp_path / "lightning_logs"),))
    expected = {
        "hidden": 3.5,
        "train/acc": 0.4000000059604645,
        "train_loss": 1.6761115789413452,
        "val_loss": 4.68825101852417,
    }
    for end in range(0, len(TABLE), 5):
        table.write_text(TABLE[:end])
        assert files.update().items() <= {
            *expected.items(),
            ("train_loss", 1.9002501964569092),
            ("train/acc", 0.36000001430511475),
            ("val_loss", 0.9654787182807922),
        }
    table.write_text(TABLE)
    files.update()
    assert files.values == expected
    assert files.update() == {}


def test_a_table_that_is_written_again_with_a_new_column(tmp_path: Path) -> None:
    table = tmp_path / "metrics.csv"
    table.write_text("epoch,step,loss\n0,1,0.5\n0,2,0.25\n")
    files = ScalarFiles(str(tmp_path))
    assert files.update() == {"loss": 0.25}
    table.write_text("epoch,loss,step,val_loss\n0,0.5,1,\n0,0.25,2,\n0,,2,nan\n")
    found = files.update()
    assert found == pytest.approx({"loss": 0.25, "val_loss": float("nan")}, nan_ok=True)
    table.write_text("epoch,step,loss\n0,1,0.125\n")
    assert files.update() == {"loss": 0.125}


def test_other_and_hostile_tables(tmp_path: Path) -> None:
    for number, content in enumerate(
        [
            "a,b\n1,2\n",
            "step,<b>,loss\n1,2,x\n1,2\n",
            "step,loss",
            "step," + "n," * 9000 + "\n",
            "\n" * 9,
            "step,loss\n" + "1,0." + "1" * (1 << 17),
        ]
    ):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "metrics.csv").write_text(content)
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe/metrics.csv")
    (tmp_path / "link").mkdir()
    (tmp_path / "link/metrics.csv").symlink_to("/dev/zero")
    assert ScalarFiles(str(tmp_path)).update() == {}


def test_names_of_the_runs_of_libraries_are_left_out(tmp_path: Path) -> None:
    runs, logs, own = tmp_path / "runs", tmp_path / "lightning_logs", tmp_path / "own"
    for number, directory in enumerate(
        (runs / "Nov29_08-46-00_node7", logs / "version_0", logs / "version_1", own / "version_3")
    ):
        directory.mkdir(parents=True)
        path = directory / f"events.out.tfevents.{number}.node7"
        path.write_bytes(TF2 if number == 0 else TF1)
        os.utime(path, (number, number))
    (tmp_path / "link").symlink_to(logs)
    folders = tuple(str(tmp_path / name) for name in ("runs", "lightning_logs", "link", "none"))
    found = ScalarFiles(str(own), folders).update()
    expected = {"epoch_loss": 0.3, "lr": 0.001, "accuracy": 0.75, "version_3/accuracy": 0.75}
    assert found == pytest.approx(expected)


def test_files_of_a_short_program_are_found_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scalar_files, "SEARCH_SECONDS", 10.0)
    progress = Progress((), str(tmp_path / "none"), (str(tmp_path),))
    for _ in range(2):
        progress.update()
    (tmp_path / "metrics.csv").write_text("step,loss\n1,0.5\n")
    progress.update()
    assert progress.scalars == {}
    progress.update(last=True)
    assert progress.scalars == {"loss": 0.5}


def test_printed_values_are_not_replaced_by_older_ones_of_a_file(tmp_path: Path) -> None:
    log = tmp_path / "stdout"
    (tmp_path / "metrics.csv").write_text("step,loss\n1,0.5\n")
    log.write_bytes(b"loss: 0.4\n")
    progress = Progress((str(log),), str(tmp_path))
    progress.update()
    assert progress.scalars == {"loss": 0.5}
    log.write_bytes(b"loss: 0.4\nloss: 0.3\n")
    for _ in range(2):
        progress.update()
        assert progress.scalars == {"loss": 0.3}
