"""Replace files atomically."""

from __future__ import annotations

from pathlib import Path


def replace_file(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write ``data`` to a new file and rename it to ``path``.

    Daemons reload their configuration while they run. A NodeManager ends if ``core-site.xml`` is
    empty.

    Parameters
    ----------
    mode
        Permissions of the file. None means the default of the umask.
    """
    draft = path.with_name(f".{path.name}.new")
    draft.write_bytes(data)
    if mode is not None:
        draft.chmod(mode)
    draft.replace(path)
