"""Send the values of ``--with``, and read the values of ``--return``.

``submarine_runtime.values.archive`` defines the format; nothing is pickled.
"""

from __future__ import annotations

import difflib
import io
import keyword
from collections.abc import Iterable, Mapping
from pathlib import Path

from submarine_jobs.errors import SubmarineError, UsageError
from submarine_runtime.translation import _
from submarine_runtime.values import (
    DEFAULT_LIMIT,
    ArchiveContent,
    ValuesError,
    pack_values,
    unpack_values as _unpack,
)

__all__ = ["DEFAULT_LIMIT", "ArchiveContent", "parse_names", "send_values", "unpack_values"]


def parse_names(text: str, option: str) -> tuple[str, ...]:
    """Split ``x_train,y_train``; ``option`` (such as ``--with``) is for the message.

    Raises
    ------
    UsageError
        If a name is not a Python identifier.
    """
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names:
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("__"):
            raise UsageError(
                _('{option} got "{name}", which is not the name of a variable.').format(
                    option=option, name=name[:60]
                ),
                _("Write names with commas between, such as {option} x_train,y_train.").format(
                    option=option
                ),
            )
    if not names:
        raise UsageError(
            _("{option} got no name.").format(option=option),
            _("For example: {option} x_train,y_train.").format(option=option),
        )
    return names


#: Names that IPython adds to the variables of the notebook.
_SHELLS = frozenset(("In", "Out", "exit", "quit", "open", "get_ipython"))


def send_values(
    names: Iterable[str],
    namespace: Mapping[str, object],
    *,
    limit: int = DEFAULT_LIMIT,
    stored: Mapping[str, tuple[str, str]] | None = None,
) -> bytes:
    """Pack the values of ``names`` in ``namespace`` for ``values.zip``.

    Parameters
    ----------
    namespace
        The variables of the notebook.
    limit
        Maximum total bytes; default 1 GiB.
    stored
        Name -> input and kind of the frames that the job fetches; see ``values.frames``.

    Raises
    ------
    UsageError
        If a name is not defined, or its value cannot be sent.
    """
    chosen: dict[str, object] = {}
    for name in names:
        if name not in namespace:
            own = [known for known in namespace if known not in _SHELLS and known[:1] != "_"]
            close = difflib.get_close_matches(name, own, 1)
            hint = (
                _("Did you mean {suggestion}?").format(suggestion=close[0])
                if close
                else _("Run the cell that defines it first.")
            )
            raise UsageError(
                _("--with names {name}, which this notebook does not define.").format(name=name),
                hint,
            )
        chosen[name] = namespace[name]
    buffer = io.BytesIO()
    try:
        pack_values(chosen, buffer, limit=limit, stored=stored)
    except ValuesError as error:
        raise UsageError(_("--with cannot send this: {error}").format(error=error)) from None
    return buffer.getvalue()


def unpack_values(source: bytes | Path, *, limit: int = DEFAULT_LIMIT) -> ArchiveContent:
    """Read the values that a program returned; they contain data only, no code.

    Raises
    ------
    SubmarineError
        If the file is invalid or too large.
    """
    try:
        return _unpack(io.BytesIO(source) if isinstance(source, bytes) else source, limit=limit)
    except ValuesError as error:
        raise SubmarineError(
            _("The job's result cannot be read: {error}").format(error=error)
        ) from None
