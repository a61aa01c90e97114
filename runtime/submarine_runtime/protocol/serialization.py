"""Convert dataclasses to plain JSON values and back.

The declared types of the fields are the schema: ``str``, ``int``, ``float``, ``bool``, ``Any``,
enums, dataclasses, ``list[X]``, ``Sequence[X]``,
``tuple[X, ...]``, ``dict[str, X]``, ``Mapping[str, X]`` and
``X | None``. They are read as text, because Python 3.8 cannot evaluate ``list[str]`` or
``str | None``. A class in an annotation is looked up in the module of the dataclass.
"""

from __future__ import annotations

import sys
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Callable, Mapping, TypeVar

#: Version of every format of this package; a reader refuses a newer one.
PROTOCOL_VERSION = 2

T = TypeVar("T")
Reader = Callable[[Any], Any]

_ATOMS = frozenset({str, int, float, bool, type(None)})
#: Annotation -> accepted types of a JSON value, and their name in messages.
_PLAIN = {
    "str": ((str,), "a string"),
    "int": ((int,), "an integer"),
    "float": ((float, int), "a number"),
    "bool": ((bool,), "true or false"),
}


class FieldError(ValueError):
    """A value that has not the declared type; ``path`` leads to its field."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.problem = problem
        self.path = path

    def within(self, name: object) -> FieldError:
        """Return the error with the name of the field, key or index that contains it."""
        return FieldError(self.problem, f"{name}.{self.path}" if self.path else str(name))


def to_json(value: Any, *, defaults: bool = True) -> Any:
    """Return plain JSON values: a dataclass as a dict, an enum member as its value.

    Parameters
    ----------
    defaults
        Whether to write fields that have their defaults; ``from_json`` does not need them.
    """
    if type(value) in _ATOMS:
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: to_json(item, defaults=defaults) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item, defaults=defaults) for item in value]
    if is_dataclass(value):
        return {
            field.name: to_json(getattr(value, field.name), defaults=defaults)
            for field in fields(value)
            if defaults or not _has_default(value, field)
        }
    return value


def _has_default(value: Any, field: Field[Any]) -> bool:
    if field.default_factory is not MISSING:
        return bool(getattr(value, field.name) == field.default_factory())
    return field.default is not MISSING and bool(getattr(value, field.name) == field.default)


def from_json(cls: type[T], data: Any) -> T:
    """Return a dataclass from what ``to_json`` returned for it; unknown fields are ignored.

    Raises
    ------
    FieldError
        If a field is missing or has the wrong form. It is a ValueError that begins with the path of
        the field, for example ``tasks.0.state``.
    """
    if not isinstance(data, Mapping):
        raise _unexpected("an object", data)
    readers = _field_readers(cls)  # type: ignore[arg-type]
    values = {}
    name = ""
    try:
        for name, item in data.items():
            if name in readers:
                values[name] = readers[name](item)
    except FieldError as exc:
        raise exc.within(name) from None
    try:
        return cls(**values)
    except TypeError:
        for field in fields(cls):  # type: ignore[arg-type]
            required = field.default is MISSING and field.default_factory is MISSING
            if required and field.name not in values:
                raise FieldError("missing", field.name) from None
        raise


@lru_cache(maxsize=None)
def _field_readers(cls: type[Any]) -> dict[str, Reader]:
    names = vars(sys.modules[cls.__module__])
    return {field.name: _reader(str(field.type), names) for field in fields(cls)}


def _reader(annotation: str, names: Mapping[str, Any]) -> Reader:
    if annotation == "Any":
        return lambda value: value
    if annotation.endswith(" | None"):
        read_value = _reader(annotation[: -len(" | None")], names)
        return lambda value: None if value is None else read_value(value)
    if annotation in _PLAIN:
        return _plain_reader(*_PLAIN[annotation])
    outer, _, arguments = annotation.partition("[")
    if not arguments:
        cls = names[outer]
        return _enum_reader(cls) if issubclass(cls, Enum) else lambda value: from_json(cls, value)
    inner = arguments[:-1]
    if outer in ("dict", "Mapping"):
        return _mapping_reader(_reader(inner[len("str, ") :], names))
    if outer == "tuple":
        return _list_reader(_reader(inner[: -len(", ...")], names), tuple)
    return _list_reader(_reader(inner, names), list)


def _plain_reader(types: tuple[type, ...], expected: str) -> Reader:
    def read(value: Any) -> Any:
        if type(value) not in types:  # ``isinstance`` accepts True as an integer.
            raise _unexpected(expected, value)
        return value

    return read


def _enum_reader(cls: type[Enum]) -> Reader:
    def read(value: Any) -> Enum:
        try:
            return cls(value)
        except ValueError:
            raise FieldError(f"no {cls.__name__}: {value!r:.60}") from None

    return read


def _list_reader(read_item: Reader, make: Callable[[list[Any]], Any]) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            raise _unexpected("a list", value)
        items = []
        try:
            for item in value:
                items.append(read_item(item))  # noqa: PERF401 - the length is the index of an error
        except FieldError as exc:
            raise exc.within(len(items)) from None
        return make(items)

    return read


def _mapping_reader(read_item: Reader) -> Reader:
    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _unexpected("an object", value)
        items = {}
        key = ""
        try:
            for key, item in value.items():
                items[key] = read_item(item)
        except FieldError as exc:
            raise exc.within(key) from None
        return items

    return read


def _unexpected(expected: str, value: Any) -> FieldError:
    return FieldError(f"expected {expected}, got {type(value).__name__}")
