"""PyTorch with Lightning, transformers and Accelerate for tests: Debian's, and the registry's."""

from __future__ import annotations

from pathlib import Path

import pytest

#: Made by ``scripts/setup.sh torch-tree``; the option ``--python-env path:`` of ``run`` takes it.
ENVIRONMENT = Path(__file__).resolve().parents[1] / ".venv-torch"
#: Made by ``scripts/setup.sh torch-current``, for ``make test-full``.
CURRENT = ENVIRONMENT.with_name(".venv-torch-current")
#: Debian's with DeepSpeed instead, made by ``scripts/setup.sh deepspeed``.
DEEPSPEED = ENVIRONMENT.with_name(".venv-deepspeed")


def torch_environment() -> Path:
    """Return the virtual environment; skip the test where there is none."""
    if not (ENVIRONMENT / ".set-up-torch").exists():
        pytest.skip("scripts/setup.sh torch-tree makes .venv-torch")
    return ENVIRONMENT


def current_torch_environment() -> Path:
    """Return the environment with the registry's PyTorch; skip the test where there is none."""
    if not (CURRENT / ".set-up-torch-current").exists():
        pytest.skip("scripts/setup.sh torch-current makes .venv-torch-current")
    return CURRENT


def deepspeed_environment() -> Path:
    """Return the environment with DeepSpeed; skip the test where there is none."""
    if not (DEEPSPEED / ".set-up-deepspeed").exists():
        pytest.skip("scripts/setup.sh deepspeed makes .venv-deepspeed")
    return DEEPSPEED
