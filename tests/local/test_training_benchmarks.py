"""What the scaling benchmarks run: a real job, and networks with links of a limited rate."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import training_runs  # noqa: E402
from training_runs import Training  # noqa: E402

#: Prints the rate of a link, or the reason why there is none.
MEASURE_LINK = """
import sys, tempfile
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from efficiency import link_rate
from limited_links import LimitedLinks, enter, inside
if not inside():
    raise SystemExit(enter())
with tempfile.TemporaryDirectory() as name, LimitedLinks(Path(name), 2, 80) as links:
    print("Mbit/s", link_rate(links, 1_000_000))
"""


def test_job_of_two_workers_is_measured_with_logs_and_metrics(tmp_path: Path) -> None:
    training = Training(workers=2, steps=10, warm_up=2, wait=0.1, size=100_000)
    exchange = tmp_path / "exchange"
    exchange.mkdir()
    found = training_runs.Jobs(tmp_path / "state").run(training, exchange)
    assert 0 < found.rate < 10
    assert 0 < found.exchange < 1 / found.rate


def test_rate_of_links_is_limited(tmp_path: Path) -> None:
    script = tmp_path / "measure.py"
    script.write_text(MEASURE_LINK)
    done = subprocess.run(
        [sys.executable, str(script), str(BENCHMARKS)], capture_output=True, text=True, check=False
    )
    if (done.returncode and "not permitted" in done.stderr) or "is not installed" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    # A full bucket holds 1 of the 8 Mbit of an array; without a limit there are thousands.
    assert 10 < float(done.stdout.split()[1]) < 100
