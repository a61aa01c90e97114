"""List and fetch remote files with the fsspec of the job's environment, for the agent.

The agent runs this file with the program's interpreter. One JSON object on standard input says what
to do; each line of standard output is a JSON object: progress, then a result or an error.
"""

from __future__ import annotations

import errno
import importlib
import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote, urlsplit

THREADS = 4
ATTEMPTS = 3
MAGIC = "*?["
#: Errors of a full disk or an exceeded quota.
FULL = (errno.ENOSPC, errno.EDQUOT)
#: Seconds without a byte after which a transfer by HTTP fails.
SILENCE = 300


class FetchError(Exception):
    """A file could not be fetched."""

    def __init__(self, uri: str, reason: BaseException) -> None:
        super().__init__(str(reason))
        self.uri = uri
        self.reason = reason


class Reporter:
    """Writes lines for the agent; what libraries print goes to standard error."""

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._lock = threading.Lock()
        self._bytes = 0

    def write(self, **values: object) -> None:
        """Write one line."""
        with self._lock:
            self._file.write(json.dumps(values) + "\n")
            self._file.flush()

    def count(self, size: int) -> int:
        """Add the bytes of a file; return the bytes so far."""
        with self._lock:
            self._bytes += size
            return self._bytes


def file_system(uri: str) -> tuple[Any, str]:
    """Return the fsspec file system of a URI, and the path in it."""
    fsspec = importlib.import_module("fsspec")
    options: dict[str, Any] = {}
    if urlsplit(uri).scheme in ("http", "https"):
        aiohttp = importlib.import_module("aiohttp")
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=SILENCE)
        # A compressed answer would not have the size of the file.
        headers = {"Accept-Encoding": "identity"}
        options = {"client_kwargs": {"timeout": timeout, "headers": headers}}
    fs, path = fsspec.core.url_to_fs(uri, **options)
    return fs, str(path)


def list_files(uri: str, limit: int) -> tuple[list[tuple[str, int, str]], bool]:
    """Return (path below the input, size, URI) of each file, and whether it is a single file.

    The size is 0 where the store does not tell it.
    """
    fs, path = file_system(uri)
    scheme = urlsplit(uri).scheme
    if scheme in ("http", "https"):
        name = unquote(urlsplit(uri).path.rstrip("/").rpartition("/")[2]) or "index"
        return [(name, fs.info(path).get("size") or 0, uri)], True
    path = path.rstrip("/")
    if any(mark in path for mark in MAGIC) and not fs.exists(path):
        fixed = path[: min(path.index(mark) for mark in MAGIC if mark in path)]
        base = fixed.rpartition("/")[0]
        found: dict[str, Any] = {}
        for name, info in fs.glob(path, detail=True).items():
            if info["type"] == "directory":
                found.update(fs.find(name, detail=True))
            else:
                found[name] = info
    else:
        info = fs.info(path)
        if info["type"] != "directory":
            return [(path.rpartition("/")[2], info.get("size") or 0, uri)], True
        base, found = path, fs.find(path, detail=True)
    if len(found) > limit:
        raise ValueError(f"there are more than {limit} files")
    # Some stores have an empty object for a directory.
    names = [name for name in sorted(found) if name != base and not name.endswith("/")]
    if not names:
        raise FileNotFoundError(uri)
    return [
        (name[len(base) :].lstrip("/"), found[name].get("size") or 0, f"{scheme}://{name}")
        for name in names
    ], False


def fetch_file(uri: str, target: str, size: int, report: Reporter) -> None:
    """Fetch one file, by rename; a transfer that fails is repeated."""
    if os.path.exists(target):
        report.write(done=report.count(size))
        return
    os.makedirs(os.path.dirname(target), 0o700, exist_ok=True)
    temporary = f"{os.path.dirname(target)}/.tmp-{os.urandom(6).hex()}"
    fs, path = file_system(uri)
    got = 0
    for attempt in range(ATTEMPTS):
        try:
            fs.get_file(path, temporary)
            got = os.path.getsize(temporary)
            if size and got != size:
                raise ValueError(
                    f"it has {got} bytes and {size} were expected: it was changed or cut off"
                )
            break
        except Exception as exc:
            if os.path.exists(temporary):
                os.unlink(temporary)
            final = isinstance(exc, (FileNotFoundError, PermissionError, ImportError))
            if final or getattr(exc, "errno", None) in FULL or attempt == ATTEMPTS - 1:
                raise FetchError(uri, exc) from exc
            time.sleep(1 << attempt)
    os.chmod(temporary, 0o600)
    os.replace(temporary, target)
    report.write(done=report.count(got))


def main() -> int:
    """Carry out the order; return the exit status."""
    order = json.load(sys.stdin)
    report = Reporter()
    try:
        if "list" in order:
            files, single = list_files(order["list"], order["limit"])
            report.write(files=files, single=single)
            return 0
        with ThreadPoolExecutor(THREADS) as pool:
            running = [
                pool.submit(fetch_file, uri, target, size, report)
                for uri, target, size in order["fetch"]
            ]
            try:
                for one in running:
                    one.result()
            except BaseException:
                for one in running:
                    one.cancel()
                raise
        report.write(finished=True)
    except Exception as exc:
        reason = exc.reason if isinstance(exc, FetchError) else exc
        kind = "missing" if isinstance(reason, FileNotFoundError) else ""
        kind = "import" if isinstance(reason, ImportError) else kind
        kind = "full" if getattr(reason, "errno", None) in FULL else kind
        text = " ".join(str(reason).split())[:300] or type(reason).__name__
        report.write(error=text, kind=kind, uri=getattr(exc, "uri", ""))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
