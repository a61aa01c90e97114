"""The kernel implements Jupyter's messaging protocol: the suite of ``jupyter_kernel_test``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from jupyter_kernel_test import KernelTests

from tests.kernel.protocol_samples import Samples, kernel_on_the_path


@pytest.fixture(scope="class", autouse=True)
def _kernel_on_the_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with kernel_on_the_path(tmp_path_factory.mktemp("protocol")):
        yield


class TestProtocol(Samples, KernelTests):
    """The samples, and additional ones for ``%submarine``."""

    kernel_name = "submarine"
    completion_samples = (
        *Samples.completion_samples,
        {"text": "%submarine canc", "matches": {"cancel"}},
    )
    complete_code_samples = (
        *Samples.complete_code_samples,
        "%submarine list",
        "%%submarine\nx = 1\n\n",
    )
    code_page_something = "%submarine run --gpu?"
    code_inspect_sample = "%submarine run"


del KernelTests  # Otherwise pytest would collect it too.


def test_the_suite_was_not_empty() -> None:
    samples = [name for name in vars(Samples) if name.startswith(("code_", "complet"))]
    assert len(samples) > 8
    assert Path(TestProtocol.__mro__[2].__module__.replace(".", "/")).name == "jupyter_kernel_test"
