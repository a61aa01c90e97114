"""The environments in the cache of a job root: names, descriptions, uses, removal.

All files of an environment begin with its key, ``python-env-DIGEST``:

- ``KEY.RANDOM.tar.gz``: an archive. The random part means that no upload replaces a file that YARN
  localizes, because YARN rejects a file that changed after the submission.
- ``KEY.json``: the description of the archives, written last and exclusively. Of two clients that
  upload the same environment, both use what the first one has described. ``KEY.whole.json``
  describes an environment without a base, where YARN itself unpacks it.
- ``KEY.used``: its modification time is the last use.
- ``KEY.removing``: the environment is being removed. A user of it first writes ``KEY.used`` and
  then looks for this file; the remover writes this file and then looks for a new use. So one of
  them notices the other.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from submarine_jobs.config import make_private
from submarine_jobs.errors import UsageError
from submarine_jobs.model import PackedEnvironment
from submarine_jobs.storage import Entry, Storage
from submarine_jobs.text import one_line
from submarine_runtime.protocol import EnvironmentArchive, EnvironmentLayers
from submarine_runtime.translation import _

PREFIX = "python-env-"
_USED, _REMOVING, _DESCRIPTION = ".used", ".removing", ".json"
_WHOLE = ".whole"
#: Seconds without a use after which an environment is removed, and between two checks for that.
UNUSED_AFTER, CHECK_EVERY = 30 * 86400.0, 86400.0
#: Maximum number of environments to remove at once.
MAX_REMOVED = 20
#: Seconds after which a removal counts as interrupted, and between two checks of it.
REMOVAL_SECONDS, _REMOVAL_CHECK = 60.0, 0.3
_CHECKED = "environments.looked"
_DIGITS = 32


@dataclass(frozen=True)
class CachedEnvironment:
    """An environment in the cache.

    Parameters
    ----------
    key
        Start of the names of its files.
    files
        The files; without the one of its last use.
    used
        The last use in epoch seconds, by the clock of the file system; None: not recorded.
    """

    key: str
    files: tuple[Entry, ...]
    used: float | None

    @property
    def digest(self) -> str:
        """The first digits of the digest of its content."""
        return self.key.removeprefix(PREFIX)

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(entry.size for entry in self.files)


class EnvironmentCache:
    """The cache of a job root.

    Parameters
    ----------
    storage, directory
        The file system of the job root, and its directory that all jobs share.
    """

    def __init__(self, storage: Storage, directory: str) -> None:
        self._storage = storage
        self._directory = directory

    @property
    def url(self) -> str:
        """URL of the directory."""
        return self._storage.url(self._directory)

    def use(self, key: str) -> None:
        """Record a use, before the files are accessed; wait until a removal in progress ends."""
        self._storage.publish(self._path(key + _USED), b"{}")
        deadline = time.monotonic() + REMOVAL_SECONDS
        while self._storage.stat(self._path(key + _REMOVING)) is not None:
            if time.monotonic() > deadline:
                self._storage.delete(self._path(key + _REMOVING))
            time.sleep(_REMOVAL_CHECK)

    def find(self, key: str, *, whole: bool = False) -> PackedEnvironment | None:
        """Return the environment of that key; None if it has to be uploaded.

        Parameters
        ----------
        whole
            Whether one archive must have all files.
        """
        self.use(key)
        found = self._described(key + _DESCRIPTION, key)
        if found is None or (whole and found.delta):
            return self._described(key + _WHOLE + _DESCRIPTION, key) if whole else found
        return found

    def upload(self, key: str, source: Path, suffix: str, progress: Callable[[int], None]) -> str:
        """Upload an archive and return its name."""
        name = f"{key}.{secrets.token_hex(4)}{suffix}"
        self._storage.make_directory(self._directory)
        self._storage.upload(source, self._path(name), progress)
        return name

    def publish(
        self, key: str, layers: EnvironmentLayers, *, whole: bool = False
    ) -> PackedEnvironment:
        """Describe uploaded archives; another client may have been faster, then use its ones."""
        name = key + (_WHOLE if whole else "") + _DESCRIPTION
        if not self._storage.publish_exclusive(self._path(name), layers.to_bytes()):
            other = self._described(name, key)
            if other is not None:
                for archive in layers.archives:
                    if archive.name.startswith(f"{key}."):
                        self._storage.delete(self._path(archive.name))
                return other
            self._storage.publish(self._path(name), layers.to_bytes())
        return self._packed(name, layers)

    def _described(self, name: str, key: str) -> PackedEnvironment | None:
        """Return a described environment if all its archives exist; else remove what is left."""
        try:
            layers = EnvironmentLayers.from_bytes(self._storage.read(self._path(name)))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, IndexError):
            self._storage.delete(self._path(name))
            return None
        for archive in layers.archives:
            if not archive.name.startswith(f"{key}."):
                self.use(archive.name.partition(".")[0])
            entry = self._storage.stat(self._path(archive.name))
            if entry is None or entry.size != archive.size:
                self._storage.delete(self._path(name))
                return None
        return self._packed(name, layers)

    def base_archive(self, key: str) -> EnvironmentArchive | None:
        """Return the only archive of an environment; None if it does not exist, or has a base."""
        found = self.find(key)
        if found is None or found.delta:
            return None
        with suppress(FileNotFoundError):
            data = self._storage.read(self._path(key + _DESCRIPTION))
            return EnvironmentLayers.from_bytes(data).archive
        return None

    def description(self, key: str) -> EnvironmentLayers | None:
        """Return the description of an environment, without a use; None if there is none."""
        for name in (key + _DESCRIPTION, key + _WHOLE + _DESCRIPTION):
            with suppress(FileNotFoundError, ValueError, TypeError, KeyError, IndexError):
                return EnvironmentLayers.from_bytes(self._storage.read(self._path(name)))
        return None

    def bases(self, key: str) -> set[str]:
        """Return the keys of the other environments whose archives an environment uses."""
        described = self.description(key)
        names = [archive.name for archive in described.archives] if described else []
        return {name.partition(".")[0] for name in names} - {key}

    def find_cached(self, name: str) -> CachedEnvironment:
        """Return the environment whose digest begins with ``name``.

        Raises
        ------
        UsageError
            If none or several do.
        """
        digest = name.removeprefix(PREFIX)
        # Every digest begins with an empty one: `env rm "$DIGEST"` with an empty variable.
        found = [one for one in self.list() if digest and one.digest.startswith(digest)]
        if len(found) != 1:
            raise UsageError(
                _("No environment in {url} has the digest {name!r}.").format(
                    url=self.url, name=one_line(name, 80)
                )
                if not found
                else _("{count} environments have a digest that begins with {name}.").format(
                    count=len(found), name=one_line(name, 80)
                ),
                _("`env list` shows them."),
            )
        return found[0]

    def list(self) -> list[CachedEnvironment]:
        """Return the environments, sorted by key."""
        groups: dict[str, list[Entry]] = {}
        entries: list[Entry] = []
        with suppress(FileNotFoundError):
            entries = self._storage.list_directory(self._directory)
        for entry in entries:
            if entry.name.startswith(PREFIX) and not entry.is_directory:
                groups.setdefault(entry.name.partition(".")[0], []).append(entry)
        return [_cached(key, entries) for key, entries in sorted(groups.items())]

    def now(self) -> float:
        """Return the time by the clock of the file system."""
        path = self._path(_CHECKED)
        self._storage.publish(path, b"{}")
        entry = self._storage.stat(path)
        return entry.modified if entry is not None else time.time()

    def remove(self, environment: CachedEnvironment) -> bool:
        """Remove an environment unless a use was recorded since it was listed."""
        marker = self._path(environment.key + _REMOVING)
        self._storage.publish(marker, b"{}")
        try:
            used = self._storage.stat(self._path(environment.key + _USED))
            if used is not None and used.modified != environment.used:
                return False
            # The descriptions first: without one, the archives are not used.
            for entry in sorted(environment.files, key=lambda e: not e.name.endswith(_DESCRIPTION)):
                self._storage.delete(self._path(entry.name))
            self._storage.delete(self._path(environment.key + _USED))
        finally:
            self._storage.delete(marker)
        return True

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"

    def _packed(self, name: str, layers: EnvironmentLayers) -> PackedEnvironment:
        urls = [self._storage.url(self._path(archive.name)) for archive in layers.archives]
        return PackedEnvironment(
            archive=urls[0],
            delta=urls[1] if len(urls) > 1 else "",
            description=self._storage.url(self._path(name)),
        )


def cache_key(digest: str) -> str:
    """Return the key of an environment with that digest."""
    return f"{PREFIX}{digest[:_DIGITS]}"


def _cached(key: str, entries: Collection[Entry]) -> CachedEnvironment:
    # Earlier releases named the file of the last use after the archive: KEY.tar.gz.used.
    uses = [entry.modified for entry in entries if entry.name.endswith(_USED)]
    files = tuple(e for e in entries if e.name != key + _USED and not e.name.endswith(_REMOVING))
    return CachedEnvironment(key, files, max(uses, default=None))


def environment_names(environments: Mapping[str, PackedEnvironment]) -> list[str]:
    """Return the sorted names of the files of environments, for the intent of a job."""
    return sorted({url.rpartition("/")[2] for one in environments.values() for url in one.urls})


def keys_of(names: Collection[str]) -> set[str]:
    """Return the keys of the environments that an intent names."""
    return {name.partition(".")[0] for name in names}


def unused(
    environments: Collection[CachedEnvironment], now: float, after: float
) -> Iterator[CachedEnvironment]:
    """Yield the environments without a use for ``after`` seconds."""
    for one in environments:
        if one.used is not None and now - one.used > after:
            yield one


def remove_unused(
    storage: Storage, cache: str, state_dir: Path, in_use: Callable[[], Collection[str] | None]
) -> list[str]:
    """Remove environments that no job has used for 30 days; return their keys.

    Runs at most once a day on this machine. An environment without a record of its use gets one
    and is checked again after 30 days.

    Parameters
    ----------
    in_use
        Returns the names of the files of unfinished jobs; None if unknown. Called only before an
        environment is removed.
    """
    found = EnvironmentCache(storage, cache)
    checked = state_dir / f"{_CHECKED}-{hashlib.sha256(found.url.encode()).hexdigest()[:16]}"
    with suppress(OSError):
        if 0 <= time.time() - checked.stat().st_mtime < CHECK_EVERY:
            return []
    make_private(state_dir)
    checked.touch()
    now = found.now()
    environments = found.list()
    for one in environments:
        if one.used is None:
            found.use(one.key)
    candidates = list(unused(environments, now, UNUSED_AFTER))
    names = in_use() if candidates else None
    if names is None:
        return []
    kept = keys_of(names)
    removable = [one for one in candidates if one.key not in kept][:MAX_REMOVED]
    return [one.key for one in removable if found.remove(one)]
