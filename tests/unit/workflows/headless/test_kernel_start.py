"""How a kernel is started for an unattended run."""

from __future__ import annotations

import pytest
from jupyter_client.kernelspec import KernelSpec

from submarine_workflows.headless.execution import is_ipykernel


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"], True),
        (["/opt/tf/bin/python", "-m", "ipykernel", "-f", "{connection_file}"], True),
        (["python3.11", "-m", "submarine_kernel", "-f", "{connection_file}"], True),
        (["python3", "-m", "submarine_kernel.remote"], False),
        (["R", "--slave", "-e", "IRkernel::main()"], False),
    ],
)
def test_kernels_that_take_options_of_ipykernel(argv: list[str], expected: bool) -> None:
    assert is_ipykernel(KernelSpec(argv=argv)) is expected


def test_a_kernel_that_is_not_there_takes_none() -> None:
    assert not is_ipykernel(None)
