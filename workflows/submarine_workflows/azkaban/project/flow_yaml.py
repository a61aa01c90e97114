"""Text of a ``.flow`` file: every value in quotes, since Azkaban takes text only there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

#: PyYAML may have been built without libyaml, which is ten times as fast.
_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_WIDTH = 1 << 30


class _Quoted(str):
    """Text that is written in double quotes."""

    __slots__ = ()


class _Dumper(_Base):  # type: ignore[misc]
    """Writes no anchors: Azkaban's reader would take them, people would not."""

    def ignore_aliases(self, data: Any) -> bool:
        """Whatever stands twice is written twice."""
        return True


def _quoted(dumper: Any, text: _Quoted) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style='"')


_Dumper.add_representer(_Quoted, _quoted)


def flow_text(root: Mapping[str, Any]) -> bytes:
    """A flow as YAML; keys in the order in which they are given."""
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
