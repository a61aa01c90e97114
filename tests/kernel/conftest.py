"""A real kernel with a kernelspec of the test."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from submarine_kernel.kernelspecs import install_kernel
from tests.notebook.conftest import Notebook


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[Mapping[str, Any]], Notebook]]:
    """Open a notebook with a kernel that has this ``metadata.submarine``."""
    with contextlib.ExitStack() as stack:

        def open_notebook(submarine: Mapping[str, Any]) -> Notebook:
            install_kernel(prefix=str(tmp_path / "prefix"), submarine=submarine)
            kernels = tmp_path / "prefix" / "share" / "jupyter" / "kernels"
            return stack.enter_context(contextlib.closing(Notebook(tmp_path, kernels)))

        yield open_notebook
