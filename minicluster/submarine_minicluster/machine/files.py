"""Replace a file whose readers must see either the old or the new content."""

from __future__ import annotations

from pathlib import Path


def replace_file(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write ``data`` to a new file and rename it to ``path``.

    Daemons read their configuration again while they run. A NodeManager that finds an empty
    ``core-site.xml`` ends.

    Parameters
    ----------
    mode
        Permissions of the file; None: those of the process's umask.
    """
    draft = path.with_name(f".{path.name}.new")
    draft.write_bytes(data)
    if mode is not None:
        draft.chmod(mode)
    draft.replace(path)
