"""Fixtures for all tests. Those of the cluster come with the minicluster itself."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

# A busy machine may be slow for a moment; pytest-timeout limits the duration of a test.
settings.register_profile("shrink", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Shrinking a failing example may take five minutes, longer than the tests may. The failure shows
# the example and how to repeat it; `pytest --hypothesis-profile shrink` makes it smaller.
settings.register_profile(
    "project",
    settings.get_profile("shrink"),
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.target],
    print_blob=True,
)
# `make check`: a quarter of the examples.
settings.register_profile("quick", settings.get_profile("project"), max_examples=25)
settings.load_profile("project")

# jsonschema, which nbformat imports, builds a grammar for the format `iri` in a second of CPU time.
# No schema of ours uses that format.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

pytest_plugins = ["submarine_minicluster.pytest_plugin"]

# Under nohup, or in the background of a shell, signals are ignored, and by all processes of the
# tests with them: what a signal does could not be tested.
for number in (signal.SIGHUP, signal.SIGINT):
    if signal.getsignal(number) is signal.SIG_IGN:
        usual = signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
        signal.signal(number, usual)


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The handwritten digits, as the examples expect them in their working directory."""
    script = Path(__file__).resolve().parents[1] / "examples/distributed/make_digits.py"
    place = tmp_path_factory.mktemp("digits")
    subprocess.run([sys.executable, str(script)], cwd=place, check=True)
    return place / "digits.npz"
