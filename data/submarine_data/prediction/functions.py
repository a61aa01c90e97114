"""The functions of the program: ``predict``, and optionally ``load_model`` and ``evaluate``.

::

    def load_model(path): ...              # once in each worker
    def predict(batch): ...                # or predict(batch, model)
    def evaluate(batch, result): ...       # metrics of a batch
"""

from __future__ import annotations

import errno
import inspect
import math
import os
import re
import sys
from typing import Any, Callable, Mapping, Sequence, TypeVar

from submarine_data.batches import Batch
from submarine_data.errors import require
from submarine_data.prediction.errors import PredictionError
from submarine_runtime.translation import _

T = TypeVar("T")
#: What ``predict`` receives: arrays by column, a ``pyarrow.RecordBatch``, or a DataFrame.
BATCH_FORMATS = ("numpy", "arrow", "pandas")
#: Column of a result without names.
RESULT = "prediction"
#: A name that ``submarine metrics`` shows.
_METRIC = re.compile(r"[A-Za-z_][\w./]{0,47}", re.ASCII)


class Functions:
    """The functions of a program.

    Parameters
    ----------
    namespace
        Global variables of the program.
    batch_format
        One of ``BATCH_FORMATS``.
    columns
        Columns that ``predict`` receives; None: all that are read.
    model
        Directory or file of the model; empty: there is none.

    Raises
    ------
    PredictionError
        If a function is missing or does not fit.
    """

    def __init__(
        self,
        namespace: Mapping[str, Any],
        batch_format: str = "numpy",
        columns: Sequence[str] | None = None,
        model: str = "",
    ) -> None:
        self._format, self._columns, self._path = batch_format, columns, model
        self._predict = _callable(namespace, "predict")
        if self._predict is None:
            raise PredictionError(_("The program defines no function predict(batch)."))
        self._load = _own_function(namespace, "load_model")
        self._evaluate = _own_function(namespace, "evaluate")
        self._takes_model = _parameters(self._predict) > 1
        if self._takes_model and self._load is None:
            raise PredictionError(
                _("predict(batch, model) needs a function load_model(path), which is missing.")
            )
        self._model: Any = None
        self._loaded = False

    def load(self) -> None:
        """Load the model, once."""
        if self._loaded:
            return
        self._loaded = True
        if self._load is not None:
            self._model = self._load(self._path) if _parameters(self._load) else self._load()

    def apply(self, batch: Batch, where: Callable[[], str]) -> tuple[Any, dict[str, float]]:
        """Return the columns of the result as Arrow arrays by name, and the metrics.

        Parameters
        ----------
        where
            Returns the place of the batch, for messages.

        Raises
        ------
        PredictionError
            If a function raises, or its result does not fit.
        """
        given = batch if self._columns is None else batch.select(self._columns)
        arguments = [_formed(given, self._format)]
        if self._takes_model:
            arguments.append(self._model)
        predict, evaluate = self._predict, self._evaluate
        assert predict is not None
        result = _called("predict", lambda: predict(*arguments), where)
        columns = result_columns(result, len(batch), where)
        if evaluate is None:
            return columns, {}
        whole = arguments[0] if given is batch else _formed(batch, self._format)
        found = _called("evaluate", lambda: evaluate(whole, result), where)
        return columns, _metrics(found, len(batch), where)


def result_columns(result: Any, rows: int, where: Callable[[], str]) -> dict[str, Any]:
    """Return what ``predict`` has returned as Arrow arrays by column.

    Parameters
    ----------
    result
        A dict of arrays or lists, a DataFrame or Series, an Arrow table or batch, or one array.
    rows
        Records of the batch.

    Raises
    ------
    PredictionError
        If it is none of these, or has another number of rows.
    """
    arrow = require("pyarrow", "predict")
    kind = type(result).__module__.partition(".")[0]
    if result is None:
        raise PredictionError(_("predict returned None for {where}.").format(where=where()))
    if kind == "pandas" and hasattr(result, "columns"):
        result = arrow.Table.from_pandas(result, preserve_index=False)
    elif kind == "pandas" and hasattr(result, "to_numpy"):
        result = {str(result.name or RESULT): arrow.Array.from_pandas(result)}
    if isinstance(result, (arrow.Table, arrow.RecordBatch)):
        result = dict(zip(result.schema.names, result.columns))
    if not isinstance(result, Mapping):
        result = {RESULT: result}
    found: dict[str, Any] = {}
    for name, value in result.items():
        try:
            column = arrow_array(arrow, value)
        except (arrow.ArrowException, TypeError, ValueError) as exc:
            raise PredictionError(
                _(
                    "Arrow cannot store {name}, which predict returned for {where}: {reason}."
                ).format(name=name, where=where(), reason=_line(exc))
            ) from exc
        if len(column) != rows:
            raise PredictionError(
                _("predict returned {count} values of {name} for {rows} rows of {where}.").format(
                    count=len(column), name=name, rows=rows, where=where()
                )
            )
        found[str(name)] = column
    return found


def arrow_array(arrow: Any, value: Any) -> Any:
    """Return an array, tensor or list as a ``pyarrow.Array``; more dimensions become lists."""
    if isinstance(value, arrow.ChunkedArray):
        return value.combine_chunks() if value.num_chunks != 1 else value.chunk(0)
    if isinstance(value, arrow.Array):
        return value
    if hasattr(value, "detach"):  # A tensor of PyTorch, perhaps of a GPU.
        value = value.detach().cpu()
    if type(value).__module__.startswith("pandas"):
        return arrow.Array.from_pandas(value)
    if isinstance(value, (list, tuple)) and not any(hasattr(one, "shape") for one in value[:1]):
        return arrow.array(value)
    numpy = require("numpy", "predict")
    array = numpy.asarray(value)
    if array.ndim == 0:
        raise ValueError(_("it is a single value"))
    if array.ndim == 1:
        return arrow.array(array.tolist() if array.dtype == object else array)
    column = arrow.array(array.reshape(-1))
    for width in reversed(array.shape[1:]):
        column = arrow.FixedSizeListArray.from_arrays(column, width)
    return column


def _metrics(found: Any, rows: int, where: Callable[[], str]) -> dict[str, float]:
    """Return the sums of metrics over the rows of a batch."""
    if not isinstance(found, Mapping):
        raise PredictionError(
            _("evaluate returned {kind} for {where}: return a dict of numbers.").format(
                kind=type(found).__name__, where=where()
            )
        )
    sums: dict[str, float] = {}
    for name, value in found.items():
        if not isinstance(name, str) or not _METRIC.fullmatch(name):
            raise PredictionError(
                _("evaluate returned the metric {name!r}: use letters, digits and _.").format(
                    name=str(name)[:60]
                )
            )
        if hasattr(value, "detach"):
            value = value.detach().cpu()
        try:
            numbers = getattr(value, "tolist", lambda value=value: value)()
            if isinstance(numbers, list):
                values = [float(number) for number in numbers]
                if len(values) != rows:
                    raise ValueError(_("it has {count} values").format(count=len(values)))
                sums[name] = math.fsum(values)
            else:
                sums[name] = float(numbers) * rows
        except (TypeError, ValueError) as exc:
            raise PredictionError(
                _(
                    "evaluate returned no number for the metric {name} of {where}, and no number "
                    "for each row: {reason}."
                ).format(name=name, where=where(), reason=_line(exc))
            ) from exc
    return sums


def _formed(batch: Batch, batch_format: str) -> Any:
    if batch_format == "numpy":
        return batch.to_numpy()
    arrow = batch.to_arrow()
    return arrow.to_pandas() if batch_format == "pandas" else arrow


def _called(name: str, call: Callable[[], T], where: Callable[[], str]) -> T:
    """Call a function of the program; its error names the place and keeps the traceback."""
    try:
        return call()
    except PredictionError:
        raise
    except Exception as exc:
        full = isinstance(exc, OSError) and exc.errno in (errno.ENOSPC, errno.EDQUOT)
        if full or isinstance(exc, (MemoryError, ImportError)):
            # These errors have reasons of their own.
            print(_("{name} failed at {where}.").format(name=name, where=where()), file=sys.stderr)
            raise
        sentence = _("{name} raised {kind} for {where}: {reason}").format(
            name=name, kind=type(exc).__name__, where=where(), reason=exc
        )
        raise PredictionError(sentence).with_traceback(exc.__traceback__) from None


def _callable(namespace: Mapping[str, Any], name: str) -> Callable[..., Any] | None:
    found = namespace.get(name)
    return found if callable(found) else None


def _own_function(namespace: Mapping[str, Any], name: str) -> Callable[..., Any] | None:
    """Return a function that the program defines; not one that it imports, as of a library."""
    found = _callable(namespace, name)
    if found is None:
        return None
    origin = sys.modules.get(getattr(found, "__module__", None) or "")
    file = getattr(origin, "__file__", None)
    program = os.path.dirname(os.path.abspath(str(namespace.get("__file__", ""))))
    own = found.__module__ == namespace.get("__name__") or (
        isinstance(file, str) and os.path.abspath(file).startswith(program + os.sep)
    )
    return found if own else None


def _parameters(function: Callable[..., Any]) -> int:
    """Return how many values a function takes by position."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return 1
    return sum(
        one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) and one.default is one.empty
        for one in parameters
    )


def _line(exc: BaseException) -> str:
    text = str(exc).strip().partition("\n")[0].rstrip(".")
    return text or type(exc).__name__
