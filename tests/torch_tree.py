"""The PyTorch of a newer Debian with Lightning, transformers and Accelerate, for tests."""

from __future__ import annotations

from pathlib import Path

import pytest

#: Made by ``scripts/setup.sh torch-tree``; the option ``--python-env path:`` of ``run`` takes it.
ENVIRONMENT = Path(__file__).resolve().parents[1] / ".venv-torch"


def torch_environment() -> Path:
    """Return the virtual environment; skip the test where there is none."""
    if not (ENVIRONMENT / ".set-up-torch").exists():
        pytest.skip("scripts/setup.sh torch-tree makes .venv-torch")
    return ENVIRONMENT
