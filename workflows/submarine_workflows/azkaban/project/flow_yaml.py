"""Write a ``.flow`` file with quoted values, because Azkaban accepts only text there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

#: PyYAML may be built without libyaml, which is ten times faster.
_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_WIDTH = 1 << 30


class _Quoted(str):
    """Text that is written in double quotes."""

    __slots__ = ()


class _Dumper(_Base):  # type: ignore[misc]
    """Writes no anchors, which Azkaban accepts but which are hard to read."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write repeated values in full."""
        return True


def _quoted(dumper: Any, text: _Quoted) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style='"')


_Dumper.add_representer(_Quoted, _quoted)


def flow_text(root: Mapping[str, Any]) -> bytes:
    """Return a flow as YAML, with keys in the given order."""
    text = yaml.dump(
        _with_quotes(root),
        Dumper=_Dumper,
        allow_unicode=True,
        default_flow_style=False,
        sort_keys=False,
        width=_WIDTH,
    )
    return str(text).encode("utf-8")


def _with_quotes(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _with_quotes(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_quotes(item) for item in value]
    return _Quoted(value) if isinstance(value, str) else value
