"""skein's jar with another first page: it opens the job's page instead of skein's overview.

YARN's tracking URL leads to the first page of the application master. skein makes it from a
template in its jar and offers no other way to choose it, so the template is replaced.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

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
#: Sizes of a zip file's local header and directory entry, and where both have their flags.
_LOCAL_SIZE, _ENTRY_SIZE = 30, 46
_LOCAL_FLAGS, _ENTRY_FLAGS = 6, 8


def with_first_page(jar: bytes) -> bytes:
    """Return skein's jar, of the same size, with ``FIRST_PAGE``.

    The new template is shorter and is written over the old one. A jar without the template is
    returned as it is.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(jar)) as archive:
            info = archive.getinfo(TEMPLATE)
    except (KeyError, zipfile.BadZipFile):
        return jar
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(FIRST_PAGE) + packer.flush()
    entry = jar.rfind(TEMPLATE.encode()) - _ENTRY_SIZE
    if len(packed) > info.compress_size or jar[entry : entry + 4] != b"PK\1\2":
        return jar
    made = bytearray(jar)
    for flags_at in (info.header_offset + _LOCAL_FLAGS, entry + _ENTRY_FLAGS):
        # Flags and method; then, after the time: checksum and sizes.
        struct.pack_into("<HH", made, flags_at, 0, zipfile.ZIP_DEFLATED)
        sizes = (len(packed), len(FIRST_PAGE))
        struct.pack_into("<III", made, flags_at + 8, zlib.crc32(FIRST_PAGE), *sizes)
    name, extra = struct.unpack_from("<HH", jar, info.header_offset + _LOCAL_SIZE - 4)
    start = info.header_offset + _LOCAL_SIZE + name + extra
    made[start : start + len(packed)] = packed
    return bytes(made)
