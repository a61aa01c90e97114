"""Exchange values between a notebook and a program without pickle.

Used in both directions: the notebook packs ``--with`` and the program's side unpacks it; the
program's side packs ``--return`` and the notebook unpacks it. Standard library only; NumPy is
imported only for arrays. Reading values never runs code.

The form is a zip without compression (so that the sizes in it are real) that holds
``values.json``::

    {"version": 1, "values": {NAME: NODE, ...}, "refused": {NAME: SENTENCE, ...}}

and one file per array (``.npy``) or bytes (``.bin``). A NODE is one of

- ``{"kind": "json", "value": V}``: null, booleans, integers, finite floats, strings, and lists and
  dicts (string keys) of these;
- ``{"kind": "float", "value": "nan" | "inf" | "-inf"}``, which JSON cannot represent;
- ``{"kind": "npy", "file": "0.npy"}``: an array, format of ``numpy.lib.format``, no objects;
- ``{"kind": "scalar", "dtype": "float32", "value": NODE}``: a NumPy number, complex as a tuple;
- ``{"kind": "list" | "tuple", "items": [NODE, ...]}``;
- ``{"kind": "dict", "items": [[NODE, NODE], ...]}``: key and value, if a key is not a string or a
  value is not plain JSON;
- ``{"kind": "bytes", "file": "1.bin"}``;
- ``{"kind": "item", "value": NODE}``: a NumPy datetime, as an array without dimensions;
- ``{"kind": "datetime" | "date" | "time", "value": ISO, "zone": NAME}``, ``timedelta``, and pandas'
  ``Timestamp``, ``Timedelta``, ``NaTType``;
- ``frame``, ``series``, ``index``, ``rangeindex``, ``multiindex``: pandas objects, a column a NODE.

A tensor is stored as a NumPy array. ``"stored": {NAME: [INPUT, KIND]}``, which only a notebook
writes, names frames that the job fetches as Parquet files; see ``frames``.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zipfile
from typing import IO, Any, Callable, Mapping, NamedTuple, Union

from submarine_runtime.translation import _
from submarine_runtime.values.decoder import Decoder
from submarine_runtime.values.encoder import FILES_LIMIT, NODES_LIMIT, Encoder, ValuesError

__all__ = ["DEFAULT_LIMIT", "ArchiveContent", "ValuesError", "pack_values", "unpack_values"]

VERSION = 1
DEFAULT_LIMIT = 1 << 30
_INDEX = "values.json"
_INDEX_LIMIT = 256 << 20
#: Maximum number of commas and brackets of ``values.json``: six for each node of the encoder.
_PARTS_LIMIT = 6 * NODES_LIMIT
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_MEMBER = re.compile(r"[0-9]{1,5}\.(?:npy|bin)\Z")
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)

_UNREADABLE = (
    zipfile.BadZipFile,
    struct.error,
    EOFError,
    NotImplementedError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    ValueError,
)

Source = Union[str, "os.PathLike[str]", IO[bytes]]


class ArchiveContent(NamedTuple):
    """Content of a zip: the values, and for each name that was not packed the reason.

    ``stored`` has the input and the kind of each frame that is not in the zip.
    """

    values: dict[str, Any]
    refused: dict[str, str]
    stored: dict[str, tuple[str, str]] = {}


def pack_values(
    values: Mapping[str, object],
    target: Source,
    *,
    limit: int = DEFAULT_LIMIT,
    strict: bool = True,
    stored: Mapping[str, tuple[str, str]] | None = None,
) -> dict[str, str]:
    """Write ``values`` to ``target``.

    Parameters
    ----------
    values
        Name -> value: JSON, NumPy arrays and numbers, bytes, datetimes, tensors, pandas objects,
        and lists, tuples and dicts of those.
    target
        Path or binary file to write.
    limit
        Maximum number of bytes of the zip.
    strict
        Raise for the first value that is not supported. Otherwise it is left out and the reason is
        stored in the zip, so that the other values are not lost.
    stored
        Name -> input and kind (``pandas``, ``arrow``) of the frames that the job fetches.

    Returns
    -------
    dict
        Name -> reason for each value that was left out; empty with ``strict``.

    Raises
    ------
    ValuesError
        If a value is not supported or ``limit`` is exceeded (only with ``strict``).
    """
    refused: dict[str, str] = {}
    nodes: dict[str, Any] = {}
    encoder = Encoder(limit)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, value in values.items():
            node = _encode(encoder, name, value, None if strict else refused)
            if node is not None:
                nodes[name] = node
        for file, write in encoder.files.items():
            _write_member(archive, file, write)
        index = {"version": VERSION, "values": nodes, "refused": refused, "stored": stored or {}}
        content = json.dumps(index, allow_nan=False).encode("ascii")
        _write_member(archive, _INDEX, lambda stream: stream.write(content))
    return refused


def unpack_values(source: Source, *, limit: int = DEFAULT_LIMIT) -> ArchiveContent:
    """Read what ``pack_values`` wrote; the source is untrusted.

    Raises
    ------
    ValuesError
        If the zip is malformed, is larger than ``limit``, or holds arrays without NumPy here.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            _check_members(archive, limit)
            content = archive.read(_INDEX)
            _check_count(content)
            data = json.loads(content.decode("utf-8"))
            del content
            if not isinstance(data, dict) or data.get("version") != VERSION:
                raise ValuesError(_("The values are of a version that this release cannot read."))
            decoder = Decoder(archive)
            values = _decode(decoder, data["values"])
            refused = {str(name): str(text) for name, text in data.get("refused", {}).items()}
            stored = {
                str(name): (str(one), str(kind))
                for name, (one, kind) in data.get("stored", {}).items()
            }
            return ArchiveContent(values, refused, stored)
    except ValuesError:
        raise
    except _UNREADABLE as error:
        raise ValuesError(
            _("The file does not hold values that can be read ({error}).").format(
                error=str(error)[:200]
            )
        ) from None
    except RecursionError:
        raise ValuesError(_("The values are nested too deeply to be read.")) from None


def _decode(decoder: Decoder, nodes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of all nodes.

    Raises
    ------
    ValuesError
        If a node is malformed: NumPy and pandas raise many kinds of errors for untrusted input.
    """
    try:
        return {str(name): decoder.decode(node) for name, node in nodes.items()}
    except (ValuesError, RecursionError):
        raise
    except Exception as error:
        message = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise ValuesError(
            _("The file does not hold values that can be read ({message}).").format(message=message)
        ) from None


def _check_count(content: bytes) -> None:
    """Reject JSON with more parts than the encoder writes: two bytes of it take 60 in memory."""
    if _parts(content) > _PARTS_LIMIT and _parts(_STRING.sub(b"", content)) > _PARTS_LIMIT:
        raise ValuesError(
            _("{index} holds more than {parts_limit:,} values.").format(
                index=_INDEX, parts_limit=_PARTS_LIMIT
            )
        )


def _parts(content: bytes) -> int:
    return sum(content.count(mark) for mark in (b",", b"[", b"{"))


def _encode(
    encoder: Encoder, name: str, value: object, refused: dict[str, str] | None
) -> dict[str, Any] | None:
    """Return the node of ``value``; a rejection is stored in ``refused``, or else raised."""
    try:
        return encoder.encode(name, value)
    except ValuesError as error:
        if refused is None:
            raise
        refused[name] = str(error)
    except Exception as error:
        if refused is None:
            raise
        refused[name] = _("{name} could not be packed: {name_2}: {error}").format(
            name=name, name_2=type(error).__name__, error=error
        )[:500]
    return None


def _write_member(
    archive: zipfile.ZipFile, name: str, write: Callable[[IO[bytes]], object]
) -> None:
    info = zipfile.ZipInfo(name, _TIMESTAMP)
    info.create_system = 3
    info.external_attr = 0o100600 << 16
    with archive.open(info, "w", force_zip64=True) as stream:
        write(stream)


def _check_members(archive: zipfile.ZipFile, limit: int) -> None:
    """Reject files that ``pack_values`` does not write, before any byte of them is read."""
    members = archive.infolist()
    if len(members) > FILES_LIMIT + 1:
        raise ValuesError(
            _("The values are more than {files_limit} files.").format(files_limit=FILES_LIMIT)
        )
    names = set()
    for info in members:
        plain = info.filename == _INDEX or _MEMBER.match(info.filename)
        if not plain or info.filename in names or info.compress_type != zipfile.ZIP_STORED:
            raise ValuesError(
                _("The values hold an unexpected file ({filename!r}).").format(
                    filename=info.filename[:60]
                )
            )
        if info.flag_bits & 1 or info.file_size != info.compress_size:
            raise ValuesError(
                _("The file {filename!r} of the values is not plain.").format(
                    filename=info.filename[:60]
                )
            )
        names.add(info.filename)
    if sum(info.file_size for info in members) > limit:
        raise ValuesError(_("The values are larger than {limit} MiB.").format(limit=limit >> 20))
    if _INDEX in names and archive.getinfo(_INDEX).file_size > _INDEX_LIMIT:
        raise ValuesError(
            _("{index} is larger than {index_limit} MiB.").format(
                index=_INDEX, index_limit=_INDEX_LIMIT >> 20
            )
        )
