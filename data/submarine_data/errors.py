"""The error of this package, and optional packages that are imported when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from submarine_runtime.translation import _

#: What pip calls a package, where that differs from the name of its module.
_DISTRIBUTIONS = {"PIL": "pillow"}


class DataError(Exception):
    """Data that cannot be read: one sentence with the file and, where there is one, the place.

    The place is a row group, a stripe, a record or a byte offset.
    """


def require(module: str, purpose: str) -> Any:
    """Import a module of an optional package.

    Parameters
    ----------
    module
        Full name of the module, for example ``pyarrow.parquet``.
    purpose
        What needs it; the beginning of the sentence if it is missing.

    Raises
    ------
    DataError
        If the package is not installed in this Python, or does not work in it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as exc:
        top = module.partition(".")[0]
        if (exc.name or "").partition(".")[0] != top:
            raise
        raise DataError(
            _("{purpose} needs the package {package}: pip install {package}").format(
                purpose=purpose, package=_DISTRIBUTIONS.get(top, top)
            )
        ) from None
    except ImportError as exc:
        # Such as NumPy of another major version than the package was built for.
        raise DataError(
            _("{purpose} needs {module}, which cannot be imported: {reason}.").format(
                purpose=purpose, module=module, reason=str(exc).partition("\n")[0].rstrip(".")
            )
        ) from exc
