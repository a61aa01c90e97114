"""skein's jar with another first page, repairs of its master, and the cluster's name of GPUs.

YARN's tracking URL leads to the first page of the application master, and skein makes it from a
template in its jar. skein keeps YARN's text on the end of a container, but a fixed sentence for one
that ends with a positive exit status, such as that of Docker; no other component keeps the text.
skein numbers requests of containers after the last key of a sorted map, but YARN's priorities are
in descending order, so that is the lowest number of an open request. A container that is requested
after another one was placed then gets the number of an open request, and one of both is lost.
skein requests GPUs as ``yarn.io/gpu``, a constant of one of its classes. It offers no other way to
choose any of these, so they are replaced.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib

from submarine_runtime.yarn import GPU

#: The class that requests resources.
RESOURCE_CLASS = "com/anaconda/skein/MsgUtils.class"
#: The class that keeps the texts of containers, and numbers their requests.
MASTER_CLASS = "com/anaconda/skein/ApplicationMaster.class"
#: JVM code: after the jump for a status that is not positive, a constant is stored in the variable
#: of the text, and a jump passes the code that stores YARN's diagnostics there.
_FIXED_TEXT = re.compile(
    rb"(?<=\x9e\x00\x0b)\x13..\x3a\x06\xa7\x00\x09(?=\x2d\xb6..\x3a\x06)", re.DOTALL
)
_NOP = b"\0"
#: Methods of ``TreeMap``: of the number after which skein counts, and of the highest one.
_LOWEST, _HIGHEST = "lastKey", "firstKey"
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
#: What identifies the changes to skein's jar, beside the name of GPUs.
CHANGES = FIRST_PAGE + _FIXED_TEXT.pattern + _HIGHEST.encode()
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
        made = with_repaired_master(with_first_page(file.read()))
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
    """Return skein's jar, of the same size, with ``FIRST_PAGE``; see ``_overwritten``."""
    return _overwritten(jar, TEMPLATE, FIRST_PAGE)


def with_repaired_master(jar: bytes) -> bytes:
    """Return skein's jar, of the same size, whose master keeps texts and repeats no number.

    The code that stores the fixed sentence becomes no operation, so the code that stores YARN's
    text on a container follows for each status. Requests are numbered after the highest open one. A
    jar with another code is returned as it is.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(jar)) as archive:
            code = archive.read(MASTER_CLASS)
    except (KeyError, zipfile.BadZipFile):
        return jar
    changed, found = _FIXED_TEXT.subn(lambda match: _NOP * len(match.group()), code)
    lowest, highest = _text_constant(_LOWEST), _text_constant(_HIGHEST)
    if found != 1 or code.count(lowest) != 1 or highest in code:
        return jar
    return _overwritten(jar, MASTER_CLASS, changed.replace(lowest, highest))


def _overwritten(jar: bytes, name: str, content: bytes) -> bytes:
    """Return a jar, of the same size, with another content of a file.

    The compressed content is written over the old one. A jar without the file, or with less space
    for it, is returned as it is.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(jar)) as archive:
            info = archive.getinfo(name)
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
    length, extra = struct.unpack_from("<HH", jar, info.header_offset + _LOCAL_SIZE - 4)
    start = info.header_offset + _LOCAL_SIZE + length + extra
    made[start : start + len(packed)] = packed
    return bytes(made)
