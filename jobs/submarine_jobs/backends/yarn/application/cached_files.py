"""Files of the application masters in the cache of the job root, shared by all jobs.

skein uploads its jar (7.85 MB) with each submission. The driver uses an empty jar instead, and
masters get the jar from the cache, which node managers keep between jobs. A small jar with a
yarn-site.xml shortens the heartbeat interval of masters that wait for other containers.
"""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from submarine_jobs.backends.yarn.cluster import HadoopConf, read_properties, write_properties
from submarine_jobs.backends.yarn.driver import CHANGES, make_master_jar, skein_jar
from submarine_jobs.storage import Storage
from submarine_runtime.yarn import GPU

_EPOCH = (1980, 1, 1, 0, 0, 0)


class CachedFiles:
    """The cached files in a job root.

    Parameters
    ----------
    storage, directory
        ``<job root>/cache``.
    """

    def __init__(self, storage: Storage, directory: str) -> None:
        self._storage = storage
        self._directory = directory
        self._there: set[str] = set()
        self._lock = threading.Lock()
        self.uploaded = 0

    def skein_jar(self, gpu_resource: str = GPU) -> str:
        """Return the path of the masters' jar in the storage; upload it if it is missing."""
        source = Path(skein_jar())
        digest = _digest(source, source.stat().st_mtime_ns)
        if gpu_resource == GPU:
            # Of the size of its source: nothing is made for a jar that is there.
            size = source.stat().st_size
            return self._ensure(
                f"skein-{digest}.jar", size, lambda: make_master_jar(str(source), GPU)
            )
        data = make_master_jar(str(source), gpu_resource)
        name = f"skein-{digest}-{gpu_resource.partition('.')[0]}.jar"
        return self._ensure(name, len(data), lambda: data)

    def heartbeat_jar(self, conf: HadoopConf, milliseconds: int) -> str:
        """Return the path of the jar for a heartbeat interval of ``milliseconds``."""
        data = heartbeat_jar(conf, milliseconds)
        name = f"heartbeat-{hashlib.sha256(data).hexdigest()[:16]}.jar"
        return self._ensure(name, len(data), lambda: data)

    def forget(self) -> None:
        """Check the files again at the next call: the cache may have been emptied."""
        with self._lock:
            self._there.clear()

    def _ensure(self, name: str, size: int, data: Callable[[], bytes]) -> str:
        path = f"{self._directory}/{name}"
        with self._lock:
            if path not in self._there:
                found = self._storage.stat(path)
                if found is None or found.size != size:
                    self._storage.publish(path, data(), mode=0o600)
                    self.uploaded += size
                self._there.add(path)
        return path


def heartbeat_jar(conf: HadoopConf, milliseconds: int) -> bytes:
    """Return a jar with the client's yarn-site.xml that sets the heartbeat interval of masters.

    skein's master sends a heartbeat every min(5 s, half of the configured expiry interval of the
    ResourceManager). The jar precedes the configuration of the node on the class path, and changes
    that setting for this master only.
    """
    site = read_properties(conf.directory / "yarn-site.xml")
    for key in ("yarn.am.liveness-monitor.expiry-interval-ms",):
        site[key] = str(2 * milliseconds)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as jar:
        entry = zipfile.ZipInfo("yarn-site.xml", _EPOCH)
        jar.writestr(entry, write_properties(site))
    return buffer.getvalue()


@lru_cache(maxsize=4)
def _digest(path: Path, _mtime: int) -> str:
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    digest.update(CHANGES)
    return digest.hexdigest()[:16]
