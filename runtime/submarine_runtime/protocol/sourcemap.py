"""Map lines of the program's files to lines of the notebook cells that they come from.

The notebook's side writes the map into the bundle (``.submarine/sourcemap.json``). The agent reads
it to name cells in tracebacks. ``submarine_jobs`` merges the cells.

JSON form, version 1: ``{"version": 1, "files": {"model.py": [{"start": 1, "end": 12,
"cell": "[3]", "cell_id": "abc", "line": 2}, ...]}}``: lines 1 to 12 of ``model.py`` (inclusive,
counted from 1) are the lines from 2 on of the cell with the label ``[3]``.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import Any, Iterable, Mapping, NamedTuple

from submarine_runtime.translation import _

MAP_PATH = ".submarine/sourcemap.json"
NOTEBOOK_PATH = ".submarine/notebook.ipynb"
VERSION = 1

# The frame line of CPython's tracebacks; exception groups add the leading marks.
_FRAME = re.compile(
    r'^(?P<indent>[ \t|+-]*)File "(?P<path>[^"\n]+)", line (?P<line>[0-9]{1,9})'
    r"(?P<rest>(?:, in (?P<function>[^\r\n]*))?\r?)$",
    re.MULTILINE,
)
_LIBRARY = re.compile(r"(?:^|/)(?:(?:site|dist)-packages|lib(?:64)?/python\d[\d.]*)/")


class CellSegment(NamedTuple):
    """Lines ``start`` to ``end`` of a file are the lines of one cell from ``line`` on."""

    start: int
    end: int
    cell: str
    cell_id: str | None
    line: int


class CellPosition(NamedTuple):
    """A line of a cell, counted from 1; ``label`` is displayed to users: ``[3]``."""

    label: str
    cell_id: str | None
    line: int


class Frame(NamedTuple):
    """A frame of a traceback's text; ``position`` is None if it is not in a cell."""

    path: str
    line: int
    function: str | None
    position: CellPosition | None


class SourceMap:
    """The cells that the lines of each file come from.

    Parameters
    ----------
    files
        Segments of each file of the program, in ascending order without overlap; none for a file
        that does not come from cells.
    """

    def __init__(self, files: Mapping[str, Iterable[CellSegment]]) -> None:
        self.files: dict[str, tuple[CellSegment, ...]] = {
            name: tuple(sorted(segments)) for name, segments in files.items()
        }
        self._starts = {name: [s.start for s in found] for name, found in self.files.items()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SourceMap) and self.files == other.files

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.files.items())))

    def lookup(self, file: str, line: int) -> CellPosition | None:
        """Return the cell and line behind line ``line`` of ``file``; None if there is none."""
        segments = self.files.get(file)
        if not segments:
            return None
        found = segments[max(0, bisect_right(self._starts[file], line) - 1)]
        if not found.start <= line <= found.end:
            return None
        return CellPosition(found.cell, found.cell_id, found.line + line - found.start)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, version 1."""
        return {
            "version": VERSION,
            "files": {
                name: [segment._asdict() for segment in segments]
                for name, segments in self.files.items()
            },
        }

    def to_bytes(self) -> bytes:
        """Return canonical JSON: equal maps give equal bytes."""
        return (json.dumps(self.to_json(), sort_keys=True, indent=1) + "\n").encode("ascii")

    @classmethod
    def from_json(cls, data: Any) -> SourceMap:
        """Read the JSON form.

        Raises
        ------
        ValueError
            If it is not a source map of a version that this release can read.
        """
        try:
            if not 1 <= int(data["version"]) <= VERSION:
                raise ValueError("version")
            files = {
                str(name): [_segment(item) for item in segments]
                for name, segments in data["files"].items()
            }
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ValueError("this is not a source map that this release can read") from None
        return cls(files)

    @classmethod
    def from_bytes(cls, data: bytes) -> SourceMap:
        """Read what ``to_bytes`` wrote; raises ValueError as ``from_json`` does."""
        return cls.from_json(json.loads(data.decode("utf-8")))

    def frames(self, text: str, root: str | None = None) -> list[Frame]:
        """Return the frames of the tracebacks in ``text``, in order.

        Parameters
        ----------
        root
            Directory of the program in the container. None: taken from the first frame in a file of
            the program.
        """
        resolve = self._resolver(text, root)
        frames = []
        for match in _FRAME.finditer(text):
            file, line = resolve(match.group("path")), int(match.group("line"))
            position = self.lookup(file, line) if file is not None else None
            frames.append(Frame(match.group("path"), line, match.group("function"), position))
        return frames

    def map_traceback(self, text: str, root: str | None = None) -> str:
        """Add cells to the tracebacks in ``text``; the rest of the text is unchanged.

        ``File "/container/model.py", line 4, in f`` becomes ``Cell [3] "model.py", line 5, in f``
        if line 4 of that file is line 5 of the cell. Chained exceptions, exception groups and
        syntax errors are covered. The time is linear in the length of ``text``.

        Parameters
        ----------
        root
            As in ``frames``.
        """
        resolve = self._resolver(text, root)

        def named(match: Any) -> str:
            file = resolve(match.group("path"))
            position = self.lookup(file, int(match.group("line"))) if file is not None else None
            if position is None:
                return str(match.group())
            return _('{}Cell {} "{}", line {}{}').format(
                match.group("indent"), position.label, file, position.line, match.group("rest")
            )

        return _FRAME.sub(named, text)

    def _resolver(self, text: str, root: str | None) -> _Resolver:
        if root is None:
            by_base: dict[str, list[str]] = {}
            for name in self.files:
                by_base.setdefault(name.rsplit("/", 1)[-1], []).append(name)
            for match in _FRAME.finditer(text):
                root = _root_of(match.group("path"), by_base)
                if root is not None:
                    break
        return _Resolver(self.files, root)


class _Resolver:
    """Convert a path of a traceback to the name of a file of the program, or None."""

    def __init__(self, files: Mapping[str, Any], root: str | None) -> None:
        self._files = files
        self._root = None if root is None else root.rstrip("/") + "/"

    def __call__(self, path: str) -> str | None:
        if self._root is not None and path.startswith(self._root):
            path = path[len(self._root) :]
        elif path.startswith("./"):
            path = path[2:]
        return path if path in self._files else None


def _root_of(path: str, by_base: Mapping[str, Iterable[str]]) -> str | None:
    """Return the directory in which ``path`` is a file of the program; None for libraries."""
    names = by_base.get(path.rsplit("/", 1)[-1])
    if names is None or not path.startswith("/") or _LIBRARY.search(path):
        return None
    fitting = [name for name in names if path.endswith("/" + name)]
    return path[: -len(max(fitting, key=len)) - 1] if fitting else None


def _segment(item: Any) -> CellSegment:
    cell_id = item.get("cell_id")
    segment = CellSegment(
        int(item["start"]),
        int(item["end"]),
        str(item["cell"]),
        None if cell_id is None else str(cell_id),
        int(item["line"]),
    )
    if not 1 <= segment.start <= segment.end or segment.line < 1:
        raise ValueError("segment")
    return segment
