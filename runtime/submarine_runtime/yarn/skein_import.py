"""Import skein without distutils; only this module imports it.

skein 0.8.2 compares the version of gRPC by ``distutils.version.LooseVersion``, its only use of
distutils. Python 3.12 and later have no distutils, and that of setuptools loads all of setuptools:
10 MB and a third of a second. So a replacement takes its place while skein is imported.
"""

from __future__ import annotations

import re
import sys
import threading
import types
from contextlib import contextmanager
from typing import Any, Iterator

_MODULE = "distutils.version"
_LOCK = threading.Lock()


class LooseVersion:
    """A version that skein can compare: ``LooseVersion("1.66.2") < "1.18.0"``.

    Parameters
    ----------
    text
        Numbers separated by any other characters.
    """

    def __init__(self, text: str) -> None:
        self._numbers = _numbers_of(text)

    def __lt__(self, other: str) -> bool:
        return self._numbers < _numbers_of(other)


def import_skein() -> Any:
    """Return the module skein, imported by one thread at a time: its modules import each other.

    Raises
    ------
    ImportError
        If this Python has no skein.
    """
    with _LOCK, _replaced_distutils():
        # cost: skein with gRPC, which a node may lack.
        import skein  # type: ignore[import-not-found,import-untyped,unused-ignore]

        return skein


@contextmanager
def _replaced_distutils() -> Iterator[None]:
    """Provide ``distutils.version`` for the import of skein, unless that module is loaded.

    An entry of ``sys.modules`` precedes all finders, and its package is not imported. It is removed
    afterwards, so that later imports find the distutils of Python or setuptools.
    """
    if _MODULE in sys.modules or "skein" in sys.modules:
        yield
        return
    replacement: Any = types.ModuleType(_MODULE)
    replacement.LooseVersion = LooseVersion
    sys.modules[_MODULE] = replacement
    try:
        yield
    finally:
        sys.modules.pop(_MODULE, None)


def _numbers_of(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"[0-9]+", text)]
