"""Lazy exports of a package."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import pytest

from submarine_runtime import lazy

INIT = """\
from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
"""


def test_a_second_thread_finds_all_names_during_the_first_access(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "lazy_package"
    package.mkdir()
    (package / "__init__.py").write_text(INIT)
    (package / "__init__.pyi").write_text(
        "from .first import one as one\nfrom .second import two as two\n"
    )
    (package / "first.py").write_text("one = 1\n")
    (package / "second.py").write_text("two = 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    half_read, may_continue = threading.Event(), threading.Event()

    read_exports = lazy._exports

    def slow_exports(stub: str) -> Iterator[tuple[str, str]]:
        """Wait before the second export, in the first thread that reads it."""
        for source, name in read_exports(stub):
            if name == "two" and not half_read.is_set():
                half_read.set()
                assert may_continue.wait(10)
            yield source, name

    monkeypatch.setattr(lazy, "_exports", slow_exports)
    module = import_module("lazy_package")
    try:
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(lambda: module.two)
            try:
                assert half_read.wait(10)
                assert module.two == 2
            finally:
                may_continue.set()
            assert first.result(10) == 2
    finally:
        for name in [name for name in sys.modules if name.startswith("lazy_package")]:
            del sys.modules[name]
