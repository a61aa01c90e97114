"""Figures of the scaling benchmarks: what is calculated from the measurements, and real runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))

import efficiency  # noqa: E402
import limited_links  # noqa: E402
import scaling  # noqa: E402
import training_runs  # noqa: E402
from training_runs import Measurement, Training  # noqa: E402


def runs(*rates: float) -> list[Measurement]:
    return [Measurement(rate, 0.01) for rate in rates]


MEASURED = {
    ("ours", 1): runs(5.0, 4.0, 5.0),
    ("ours", 8): runs(4.5, 3.8, 4.0),
    ("bare processes", 1): runs(5.0, 4.0, 4.0),
    ("bare processes", 8): runs(4.5, 4.0, 5.0),
}


def test_scaling_is_relative_to_one_worker_of_the_same_round() -> None:
    # 8 x 0.9, 8 x 0.95 and 8 x 0.8
    assert scaling.scaling(MEASURED, "ours", 8) == pytest.approx(7.2)
    assert scaling.scaling(MEASURED, "ours", 1) == 1


def test_ratio_is_the_median_of_the_ratios_of_the_rounds() -> None:
    # 1.0, 0.95 and 0.8: the ratio of the medians would be 0.89
    assert scaling.ratio(MEASURED, "ours", 8) == pytest.approx(0.95)
    assert scaling.rate(MEASURED, "ours", 8) == 4.0


def test_markdown_table_has_a_row_for_each_number_of_workers() -> None:
    names = ["ours", "bare processes"]
    assert scaling.markdown(MEASURED, [1, 8], names) == [
        "| workers | ours, steps/s | bare processes, steps/s | ours, scaling"
        " | bare processes, scaling | ours / bare processes |",
        "|---|---|---|---|---|---|",
        "| 1 | 5.00 | 4.00 | 1.00 | 1.00 | 1.000 |",
        "| 8 | 4.00 | 4.50 | 7.20 | 8.00 | 0.950 |",
    ]


def test_every_launcher_runs_in_every_round_and_the_order_changes() -> None:
    calls: list[tuple[str, int]] = []

    def launcher(name: str) -> training_runs.Launcher:
        def run(training: Training, directory: Path) -> Measurement:
            assert not list(directory.iterdir())
            calls.append((name, training.workers))
            return Measurement(len(calls), 0.0)

        return run

    launchers = {name: launcher(name) for name in ("a", "b", "c")}
    found = scaling.measure(launchers, [1, 2], 2, 5)
    first = [(name, size) for size in (1, 2) for name in "abc"]
    second = [(name, size) for size in (1, 2) for name in "cba"]
    assert calls == first + second
    assert [run.rate for run in found["a", 1]] == [1, 9]


def test_efficiency_is_relative_to_one_worker() -> None:
    found = {
        "one worker": runs(4.0, 4.0, 2.0),
        "ring all-reduce": runs(3.6, 3.2, 1.7),
        "parameter server": runs(2.0, 2.4, 1.2),
    }
    assert efficiency.efficiency(found, "ring all-reduce") == pytest.approx(0.85)
    assert efficiency.efficiency(found, "parameter server") == pytest.approx(0.6)
    assert "| ring all-reduce | 3.20 | 10.0 ms | 0.85 | 0.87 |" in efficiency.markdown(found)


def test_calculated_efficiency_is_that_of_the_busiest_link() -> None:
    # The server receives and sends 4 x 3 MB: 192 ms of 1 Gbit/s. A member of the ring sends 4.5 MB.
    server = efficiency.calculated("parameter server", 4, 3_000_000, 0.25, 1000)
    ring = efficiency.calculated("ring all-reduce", 4, 3_000_000, 0.25, 1000)
    assert server == pytest.approx(0.25 / (0.25 + 0.192))
    assert ring == pytest.approx(0.25 / (0.25 + 0.036))


@pytest.mark.slow
def test_workers_are_measured_by_rank_0(tmp_path: Path) -> None:
    training = Training(workers=2, steps=4, warm_up=1, wait=0.05, size=4000)
    found = training_runs.run_bare(training, tmp_path)
    # The wait limits the rate, and the exchange and the output take some of the time.
    assert 0 < found.rate < 20
    assert 0 < found.exchange < 1 / found.rate
    assert json.loads((tmp_path / "result.json").read_text())["steps"] == 4
    for rank in range(2):
        lines = (tmp_path / f"{rank}.log").read_text().splitlines()
        assert len(lines) == 2 * 5
        assert lines[-1] == "loss: 0.2000 - accuracy: 0.8000"


def test_a_worker_that_fails_ends_the_others_with_its_message(tmp_path: Path) -> None:
    training = Training(workers=2, steps=1, warm_up=1, wait=60.0, size=4000)
    commands: dict[str, tuple[list[str], dict[str, str]]] = {
        "good": (["sleep", "60"], {}),
        "bad": ([sys.executable, "-c", "raise SystemExit('no memory')"], {}),
    }
    with pytest.raises(RuntimeError, match="bad failed: no memory"):
        training_runs.run_processes(commands, training, tmp_path)


def test_an_interpreter_without_torch_is_not_chosen(tmp_path: Path) -> None:
    python = tmp_path / "python"
    assert training_runs.find_torch(str(python)) is None
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    assert training_runs.find_torch(str(python)) is None
    python.write_text("#!/bin/sh\nexit 0\n")
    assert training_runs.find_torch(str(python)) == str(python)


@pytest.mark.parametrize(
    ("tool", "body", "reason"),
    [
        ("tc", None, "tc is not installed (package iproute2)"),
        ("unshare", "echo unshare: no >&2; exit 1", "`unshare --net`: unshare: no"),
    ],
)
def test_missing_rights_and_tools_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, body: str | None, reason: str
) -> None:
    for name in ("ip", "tc", "unshare", "nsenter"):
        text = body if name == tool else "exit 0"
        if text is not None:
            (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(limited_links, "_SYSTEM_PATH", "")
    assert reason in limited_links.enter()


@pytest.mark.slow
def test_efficiency_is_skipped_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "unshare").write_text("#!/bin/sh\necho not permitted >&2\nexit 1\n")
    for name in ("ip", "tc", "nsenter"):
        (tmp_path / name).write_text("#!/bin/sh\n")
    for path in tmp_path.iterdir():
        path.chmod(0o755)
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks/efficiency.py")],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.startswith("skipped: network namespaces are not permitted: `unshare --user")
