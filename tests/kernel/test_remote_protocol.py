"""A kernel in a container implements Jupyter's messaging protocol: ``jupyter_kernel_test``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from jupyter_kernel_test import KernelTests

from submarine_kernel.kernelspecs import provisioning
from tests.kernel.protocol_samples import Samples, kernel_on_the_path


@pytest.fixture(scope="class", autouse=True)
def _kernel_on_the_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    stanza = provisioning("far", {"backend": "local", "memory": "500M"})
    prefix = tmp_path_factory.mktemp("remote-protocol")
    with kernel_on_the_path(prefix, name="far", container=stanza):
        yield


class TestRemoteProtocol(Samples, KernelTests):
    """The samples without changes."""

    kernel_name = "far"


del KernelTests  # Otherwise pytest would collect it too.
