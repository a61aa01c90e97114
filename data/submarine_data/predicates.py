"""Simple predicates: (column, operator, value), all of which a record must fulfil."""

from __future__ import annotations

import operator
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence, Tuple, Union

from submarine_data.batches import ArrowBatch, Batch
from submarine_data.errors import DataError, require
from submarine_runtime.translation import _

_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda left, right: left in right,
    "not in": lambda left, right: left not in right,
}
#: Names of the functions of ``pyarrow.compute``.
_ARROW = {
    "==": "equal",
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}


class Predicate(NamedTuple):
    """A condition of a record: its column, an operator, and a value (a collection for ``in``)."""

    column: str
    operator: str
    value: Any

    def holds(self, value: Any) -> bool:
        """Return whether a value fulfils it; a missing one does not."""
        if value is None:
            return False
        try:
            return bool(_COMPARE[self.operator](value, self.value))
        except TypeError:
            raise _cannot_compare(self, type(value).__name__) from None


Condition = Union[Predicate, Tuple[str, str, Any]]


def predicates(conditions: Iterable[Condition] | None) -> tuple[Predicate, ...]:
    """Return predicates of triples.

    Raises
    ------
    DataError
        If one is no triple, or its operator is unknown.
    """
    found = []
    for condition in conditions or ():
        try:
            predicate = Predicate(*condition)
        except TypeError:
            raise DataError(
                _("{condition} is no predicate: give (column, operator, value).").format(
                    condition=condition
                )
            ) from None
        if predicate.operator not in _COMPARE:
            raise DataError(
                _("The operator {operator} is unknown; the operators are {known}.").format(
                    operator=predicate.operator, known=" ".join(_COMPARE)
                )
            )
        found.append(predicate)
    return tuple(found)


def may_match(predicate: Predicate, low: Any, high: Any) -> bool:
    """Return whether a value from ``low`` to ``high`` may fulfil a predicate."""
    value = predicate.value
    try:
        if predicate.operator in ("==", "="):
            return bool(low <= value <= high)
        if predicate.operator == "!=":
            return not low == high == value
        if predicate.operator == "in":
            return any(low <= one <= high for one in value)
        if predicate.operator in ("<", "<="):
            return bool(_COMPARE[predicate.operator](low, value))
        if predicate.operator in (">", ">="):
            return bool(_COMPARE[predicate.operator](high, value))
    except TypeError:
        pass  # Statistics of another type: the records decide.
    return True


def filtered(batch: Batch, conditions: Sequence[Predicate]) -> Batch:
    """Return the records that fulfil all predicates.

    Raises
    ------
    DataError
        If a column is missing or a value cannot be compared with it.
    """
    for predicate in conditions:
        if len(batch) == 0:
            break
        if isinstance(batch, ArrowBatch):
            batch = batch.filter(_arrow_mask(batch, predicate))
        else:
            values = batch.column(predicate.column)
            keep = [i for i, value in enumerate(values) if predicate.holds(value)]
            if len(keep) < len(values):
                batch = batch.take(keep)
    return batch


def _arrow_mask(batch: ArrowBatch, predicate: Predicate) -> Any:
    arrow = require("pyarrow", "filter")
    compute = require("pyarrow.compute", "filter")
    column = batch.arrow_column(predicate.column)
    if arrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        if predicate.operator in _ARROW:
            return getattr(compute, _ARROW[predicate.operator])(column, predicate.value)
        members = arrow.array(list(predicate.value)).cast(column.type)
        mask = compute.is_in(column, value_set=members)
        if predicate.operator == "in":
            return mask
        return compute.and_(compute.invert(mask), compute.is_valid(column))
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError, arrow.ArrowTypeError) as exc:
        raise _cannot_compare(predicate, str(column.type)) from exc


def _cannot_compare(predicate: Predicate, kind: str) -> DataError:
    return DataError(
        _("The column {column} ({kind}) cannot be compared with {value!r}.").format(
            column=predicate.column, kind=kind, value=predicate.value
        )
    )
