"""skein's jar with another first page, with YARN's text on containers and the cluster's GPUs.

YARN's tracking URL leads to the first page of the application master, and skein makes it from a
template in its jar. skein requests GPUs as ``yarn.io/gpu``, a constant of one of its classes. For a
container that ended with an exit status above 0, its master replaces YARN's text, such as that of
Docker on a missing image, by a sentence of its own; the NodeManager forgets the text at once. It
offers no other way to choose any of these, so they are replaced.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable

from submarine_runtime.yarn import GPU

#: The class that requests resources.
RESOURCE_CLASS = "com/anaconda/skein/MsgUtils.class"
#: The class that receives the end of a container, and its code for a failed one:
#: ``getExitStatus() > 0 ? "Container failed during execution, ..." : getDiagnostics()``.
MASTER_CLASS = "com/anaconda/skein/ApplicationMaster.class"
_FAILED = re.compile(
    rb"\x2d\xb6..\x9e\x00\x0b\x13..\x3a\x06\xa7\x00\x09\x2d\xb6..\x3a\x06", re.DOTALL
)
#: ``iconst_0`` and three times ``nop``, of the length of ``status.getExitStatus()``: jumps and the
#: tables of the class stay valid.
_ZERO = b"\x03\x00\x00\x00"
#: Template of the first page (Mustache), which skein names by ``TEMPLATE``.
TEMPLATE = "overview.mustache.html"
FIRST_PAGE = b"""\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{appName}}</title>
{{#pages}}<meta http-equiv="refresh" content="0; url=.{{proxyPrefix}}/{{getValue}}">
{{/pages}}
{{^pages}}<meta http-equiv="refresh" content="2">{{/pages}}
<style>body{margin:24px;background:#f5f6f8;color:#1f2933;font:14px/1.5 system-ui,sans-serif}
h1{font-size:22px;overflow-wrap:anywhere}</style>
</head><body><h1>{{appName}}</h1>
{{#pages}}<p><a href=".{{proxyPrefix}}/{{getValue}}">{{getKey}}</a></p>
{{/pages}}
{{^pages}}<p>The page of the job opens when its program starts.</p>{{/pages}}
<p><a href="{{protocol}}{{amLogsAddress}}/application.master.log?start=-4096">
Log of the application master</a></p>
</body></html>
"""
#: All changes that each jar has; part of the names of files that are made from it.
CHANGES = FIRST_PAGE + _ZERO
#: Sizes of a zip file's local header and directory entry, and where both have their flags.
_LOCAL_SIZE, _ENTRY_SIZE = 30, 46
_LOCAL_FLAGS, _ENTRY_FLAGS = 6, 8


def make_master_jar(source: str, gpu_resource: str) -> bytes:
    """Return the jar of application masters.

    Parameters
    ----------
    source
        Path of skein's jar.
    """
    with open(source, "rb") as file:
        made = with_diagnostics(with_first_page(file.read()))
    if gpu_resource == GPU:
        return made
    buffer = io.BytesIO(made)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        info = archive.getinfo(RESOURCE_CLASS)
        data = archive.read(info)
        archive.filelist.remove(info)
        del archive.NameToInfo[RESOURCE_CLASS]
        entry = zipfile.ZipInfo(RESOURCE_CLASS, info.date_time)
        archive.writestr(entry, with_gpu_resource(data, gpu_resource))
    return buffer.getvalue()


def resource_class(source: str, gpu_resource: str) -> bytes:
    """Return the class that requests GPUs, with another name of them; see ``make_master_jar``."""
    with zipfile.ZipFile(source) as archive:
        return with_gpu_resource(archive.read(RESOURCE_CLASS), gpu_resource)


def with_gpu_resource(code: bytes, name: str) -> bytes:
    """Return a class file with ``name`` in place of the constant ``yarn.io/gpu``.

    Raises
    ------
    ValueError
        If it does not have the constant exactly once.
    """
    constant = _text_constant(GPU)
    if code.count(constant) != 1:
        raise ValueError(f"skein's class does not name {GPU} once")
    return code.replace(constant, _text_constant(name))


def _text_constant(text: str) -> bytes:
    """Return an entry of a class file's table of constants: type, length, text."""
    return struct.pack(">BH", 1, len(text)) + text.encode()


def with_first_page(jar: bytes) -> bytes:
    """Return skein's jar, of the same size, with ``FIRST_PAGE``.

    A jar without the template is returned as it is.
    """
    return _with_entry(jar, TEMPLATE, lambda _template: FIRST_PAGE)


def with_diagnostics(jar: bytes) -> bytes:
    """Return skein's jar, of the same size, whose master passes on YARN's text in each case.

    A jar whose class has other code is returned as it is; failed images then end as lost agents.
    """

    def changed(code: bytes) -> bytes:
        found = [match.start() for match in _FAILED.finditer(code)]
        if len(found) != 1:
            return code
        return code[: found[0]] + _ZERO + code[found[0] + len(_ZERO) :]

    return _with_entry(jar, MASTER_CLASS, changed)


def _with_entry(jar: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    """Return a jar of the same size with other content of an entry, written over the old one.

    Without the entry, or if the new content needs more space, the jar is returned as it is.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(jar)) as archive:
            info = archive.getinfo(name)
            content = change(archive.read(info))
    except (KeyError, zipfile.BadZipFile):
        return jar
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(content) + packer.flush()
    entry = jar.rfind(name.encode()) - _ENTRY_SIZE
    if len(packed) > info.compress_size or jar[entry : entry + 4] != b"PK\1\2":
        return jar
    made = bytearray(jar)
    for flags_at in (info.header_offset + _LOCAL_FLAGS, entry + _ENTRY_FLAGS):
        # Flags and method; then, after the time: checksum and sizes.
        struct.pack_into("<HH", made, flags_at, 0, zipfile.ZIP_DEFLATED)
        sizes = (len(packed), len(content))
        struct.pack_into("<III", made, flags_at + 8, zlib.crc32(content), *sizes)
    name_size, extra = struct.unpack_from("<HH", jar, info.header_offset + _LOCAL_SIZE - 4)
    start = info.header_offset + _LOCAL_SIZE + name_size + extra
    made[start : start + len(packed)] = packed
    return bytes(made)
