"""Make an interpreter find its library where it is unpacked instead of where it was built.

An interpreter with a shared ``libpython`` names that library's directory in its ELF run path. The
text is replaced in place by ``$ORIGIN/../lib``, which is shorter than any absolute path to a
``lib`` directory that matters here; the file's size and layout stay. Does not touch any file.
"""

from __future__ import annotations

ELF = b"\x7fELF"
ORIGIN = b"$ORIGIN/../lib"


def relocated(data: bytes, library_directory: str) -> bytes:
    """The content of an executable or library whose run path names ``library_directory``.

    Returns
    -------
    bytes
        The same number of bytes; ``data`` itself where it is no ELF file or has no such path.

    Raises
    ------
    ValueError
        If the path is too short to be replaced.
    """
    old = library_directory.rstrip("/").encode()
    entry = b"\0" + old + b"\0"
    if not data.startswith(ELF) or entry not in data:
        return data
    if len(old) < len(ORIGIN):
        raise ValueError(f"{library_directory} is too short a path to be made relative")
    new = b"\0" + ORIGIN.ljust(len(old), b"\0") + b"\0"
    return data.replace(entry, new)
