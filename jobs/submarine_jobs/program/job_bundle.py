"""The files that a job runs: program, modules, source map, notebook snapshot.

The bundle depends only on the cells: equal cells give equal bytes on every machine. ``scripts``
builds bundles from files.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from submarine_jobs.errors import UsageError
from submarine_jobs.program.cell import Cell, Notice
from submarine_jobs.program.file_names import PROGRAM, package_files
from submarine_jobs.program.merging import merge_cells
from submarine_runtime.protocol import MAP_PATH, NOTEBOOK_PATH, CellSegment, SourceMap
from submarine_runtime.translation import _

MAX_BYTES = 64 * 1024 * 1024
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Bundle:
    """A program that can be shipped.

    Parameters
    ----------
    program
        The file that is run; one of ``files``.
    files
        Name within the program's directory -> content.
    notebook
        The source notebook without outputs, if there is one.
    notices
        Notices for the user: lines that were left out or moved, files that were added.
    """

    program: str
    files: Mapping[str, bytes]
    source_map: SourceMap
    notebook: bytes | None = None
    notices: tuple[Notice, ...] = field(default=(), compare=False)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the program: names and contents of its files, and the main file.

        It does not depend on the notebook snapshot and on the labels of cells, so the same program
        has the same digest. It is not the checksum of ``zip_bytes``.
        """
        digest = hashlib.sha256(f"program {self.program}\n".encode())
        for name, content in sorted(self.files.items()):
            digest.update(f"file {len(name)} {name} {len(content)}\n".encode())
            digest.update(content)
        return digest.hexdigest()

    @property
    def python_files(self) -> Mapping[str, bytes]:
        """The files that Python reads: the program and the modules, no shell script or data."""
        return {
            name: content
            for name, content in self.files.items()
            if name == self.program or name.endswith(".py")
        }

    def zip_bytes(self) -> bytes:
        """Return the bundle as a zip: files at its root, map and snapshot below ``.submarine/``.

        The zip is reproducible: sorted, with a fixed time stamp, and without compression, which
        depends on the version of zlib.
        """
        members = dict(self.files)
        members[MAP_PATH] = self.source_map.to_bytes()
        if self.notebook is not None:
            members[NOTEBOOK_PATH] = self.notebook
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for name in sorted(members):
                info = zipfile.ZipInfo(name, _TIMESTAMP)
                info.create_system = 3
                info.external_attr = 0o100644 << 16
                archive.writestr(info, members[name])
        return buffer.getvalue()

    def text(self, name: str | None = None) -> str:
        """Return the text of a file, by default of the program."""
        return self.files[name or self.program].decode("utf-8", "replace")


def build_bundle(
    cells: Sequence[Cell], *, program: str = PROGRAM, notebook: bytes | None = None
) -> Bundle:
    """Merge ``cells``, which are in program order, into a bundle.

    Parameters
    ----------
    program
        The file to run.
    notebook
        Snapshot of the notebook document (``notebook.read_notebook``).

    Raises
    ------
    UsageError
        If no cell is part of ``program``, a cell cannot be part of any program, or it is all too
        large.
    """
    by_file: dict[str, list[Cell]] = {}
    for cell in cells:
        by_file.setdefault(cell.filename, []).append(cell)
    if program not in by_file:
        raise _no_program(program, sorted(by_file))
    files: dict[str, bytes] = {}
    segments: dict[str, tuple[CellSegment, ...]] = {}
    notices: list[Notice] = []
    for name, group in sorted(by_file.items()):
        merged = merge_cells(group)
        files[name] = _encoded(merged.text, name)
        segments[name] = merged.segments
        notices.extend(merged.notices)
    for name in package_files(set(files)):
        files[name] = b""
    _check_names(set(files))
    check_size(files)
    return Bundle(program, files, SourceMap(segments), notebook, tuple(notices))


def check_size(files: Mapping[str, bytes]) -> None:
    """Refuse a program above ``MAX_BYTES``: a bundle carries code, not data."""
    if sum(map(len, files.values())) > MAX_BYTES:
        raise UsageError(
            _("The program's files are larger than {max_bytes} MiB together.").format(
                max_bytes=MAX_BYTES >> 20
            ),
            _("Send data with --with, --localization or --input_path."),
        )


def _no_program(program: str, names: list[str]) -> UsageError:
    if not names:
        return UsageError(
            _("No cell is collected, so there is no program to run."),
            _("Put %%submarine on the first line of a cell and run that cell."),
        )
    return UsageError(
        _("No collected cell is part of {program}; there are cells of {names} only.").format(
            program=program, names=", ".join(names)
        ),
        _(
            "Put %%submarine without --file above the cell that is to run, or --file {program}."
        ).format(program=program),
    )


def _check_names(names: set[str]) -> None:
    """Refuse a file and a directory with the same module name."""
    for name in sorted(names):
        stem = name[: -len(".py")]
        if f"{stem}/__init__.py" in names:
            raise UsageError(
                _(
                    "The program has both {name} and the package {stem}/, and Python would "
                    "import only one of them."
                ).format(name=name, stem=stem),
                _("Rename one with --file."),
            )


def _encoded(text: str, name: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(
            _(
                "{name} has a character that is not valid Unicode (a lone surrogate, U+{code:04X})."
            ).format(name=name, code=ord(error.object[error.start])),
            _("Write it as an escape, such as \\ud800."),
        ) from None
