"""The datasets of a job root: put, list, find and remove them.

Layout below ``<job root>/data/``::

    names/NAME.json               descriptor of a name
    content/DIGEST/...            the files, immutable
    content/DIGEST.json           descriptor of the content, published after its files
    content/DIGEST.claim          while a client writes or removes the content

A content without names belongs to a job's frame, or to a name that was replaced.
"""

from __future__ import annotations

import difflib
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace

from submarine_jobs.datasets.claims import claimed
from submarine_jobs.datasets.dataset import (
    MAX_DESCRIPTOR,
    Dataset,
    check_dataset_name,
    parse_descriptor,
)
from submarine_jobs.datasets.staging import StagedContent, check_unchanged
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.storage import Storage
from submarine_runtime.translation import _

#: Called with the number of uploaded bytes and the total.
Progress = Callable[[int, int], None]
#: Below the job root.
DATA = "data"
_THREADS = 4
_SUFFIX = ".json"
_PREFIX = re.compile(r"^[0-9a-f]{8,64}\Z")


@dataclass(frozen=True)
class PutResult:
    """A dataset that was put, and the bytes that this put has uploaded."""

    dataset: Dataset
    uploaded: int


class DatasetStore:
    """The datasets below one job root.

    Parameters
    ----------
    storage, root
        File system and path of the job root.
    user
        The user on the cluster, for the descriptors.
    """

    def __init__(self, storage: Storage, root: str, user: str) -> None:
        self.storage = storage
        self.user = user
        base = f"{root.rstrip('/')}/{DATA}"
        self._names, self._contents = f"{base}/names", f"{base}/content"

    def put(
        self,
        name: str | None,
        staged: StagedContent,
        progress: Progress = lambda done, total: None,
        *,
        replaces: bool = False,
    ) -> PutResult:
        """Upload staged files, unless the same content is there, and name them.

        Parameters
        ----------
        name
            None: the content gets no name.
        replaces
            Give the name to this content even if it belongs to another one.

        Raises
        ------
        UsageError
            If the name is invalid, belongs to other content, or a file has changed.
        StorageError
            If the file system fails; files without a descriptor may remain.
        """
        digest = staged.digest
        if name is not None:
            self._check_free(check_dataset_name(name), digest, replaces=replaces)
        described = Dataset(
            "",
            digest,
            digest,
            staged.source,
            staged.size,
            len(staged.files),
            time.time(),
            self.user,
            staged.file,
            staged.rows,
            staged.schema,
            staged.sample,
        )

        def write() -> Dataset:
            self._upload(staged, digest, progress)
            return described

        return self._publish(name, described, write, staged.size)

    def adopt(self, name: str | None, described: Dataset, *, replaces: bool = False) -> PutResult:
        """Name files that are in ``content/DIRECTORY`` already, as Spark writes them.

        If the same content is there under its digest, the new directory is removed.
        """
        if name is not None:
            self._check_free(check_dataset_name(name), described.digest, replaces=replaces)
        result = self._publish(name, described, lambda: described, described.size)
        if result.dataset.directory != described.directory:
            self.storage.delete(f"{self._contents}/{described.directory}", recursive=True)
        return result

    def names(self) -> list[Dataset]:
        """Return the named datasets, sorted by name; malformed descriptors are left out."""
        return self._descriptors(self._names)

    def unnamed(self, named: Iterable[Dataset]) -> list[Dataset]:
        """Return the contents to which no name of ``named`` refers, newest first."""
        used = {dataset.digest for dataset in named}
        found = [one for one in self._descriptors(self._contents) if one.digest not in used]
        return sorted(found, key=lambda one: -one.created)

    def find(self, text: str) -> Dataset:
        """Find a dataset by its name, or by the beginning of its digest.

        Raises
        ------
        UsageError
            If there is none, or several digests begin so.
        SubmarineError
            If its descriptor cannot be read.
        """
        if not _PREFIX.match(text):
            check_dataset_name(text)
        if "/" not in text and (found := self._read(f"{self._names}/{text}{_SUFFIX}")):
            return found
        named = self.names()
        if _PREFIX.match(text):
            known = {one.digest: one for one in [*self.unnamed(named), *named]}
            matches = [one for digest, one in known.items() if digest.startswith(text)]
            if len(matches) == 1:
                return matches[0]
            if matches:
                raise UsageError(
                    _("{count} datasets have a digest that begins with {text}.").format(
                        count=len(matches), text=text
                    ),
                    _("Write more digits."),
                )
        close = difflib.get_close_matches(text, [one.name for one in named], 1)
        raise UsageError(
            _("There is no dataset {name}.").format(name=text[:80]),
            _("Did you mean {suggestion}?").format(suggestion=close[0])
            if close
            else _("`submarine data list` lists all."),
        )

    def path(self, dataset: Dataset) -> str:
        """Return the path of a content: its directory, or its only file."""
        file = f"/{dataset.file}" if dataset.file is not None else ""
        return f"{self._contents}/{dataset.directory}{file}"

    def directory(self, dataset: Dataset) -> str:
        """Return the path of the directory of a content."""
        return f"{self._contents}/{dataset.directory}"

    def new_directory(self, name: str) -> str:
        """Return the path for files that another program writes, for ``adopt``."""
        return f"{self._contents}/{name}"

    def others(self, dataset: Dataset) -> list[str]:
        """Return the other names of the same content."""
        return [
            one.name
            for one in self.names()
            if one.digest == dataset.digest and one.name != dataset.name
        ]

    def remove(self, dataset: Dataset) -> int:
        """Remove a name, and its content if no other name refers to it; return the bytes freed."""
        if dataset.name:
            self.storage.delete(f"{self._names}/{dataset.name}{_SUFFIX}")
        marker = f"{self._contents}/{dataset.digest}{_SUFFIX}"
        with claimed(self.storage, f"{self._contents}/{dataset.digest}.claim"):
            current = self._read(marker)
            # A put of the same content looks for the marker after it has published its name.
            self.storage.delete(marker)
            if any(one.digest == dataset.digest for one in self.names()):
                if current is not None:
                    self.storage.publish(marker, _to_bytes(current))
                return 0
            directory = (current or dataset).directory
            self.storage.delete(f"{self._contents}/{directory}", recursive=True)
        return dataset.size

    def _publish(
        self, name: str | None, described: Dataset, write: Callable[[], Dataset], size: int
    ) -> PutResult:
        """Write a content unless it is there, publish its descriptor and that of the name."""
        marker = f"{self._contents}/{described.digest}{_SUFFIX}"
        uploaded = 0
        while True:
            content = self._read(marker)
            if content is None:
                self.storage.make_directory(self._contents)
                claim = f"{self._contents}/{described.digest}.claim"
                with claimed(self.storage, claim, lambda: self._read(marker) is not None) as held:
                    # The last holder may have published it just before it ended.
                    if held and self._read(marker) is None:
                        content = write()
                        self.storage.publish(marker, _to_bytes(content))
                        uploaded = size
                continue
            if name is None:
                return PutResult(
                    self._located(replace(described, directory=content.directory)), uploaded
                )
            # Source, schema and sample describe what was put under this name.
            placed = replace(described, directory=content.directory)
            named = placed.named(name, time.time(), self.user)
            self.storage.publish(f"{self._names}/{name}{_SUFFIX}", _to_bytes(named))
            if self._read(marker) is not None:
                return PutResult(self._located(named), uploaded)

    def _upload(self, staged: StagedContent, directory: str, progress: Progress) -> None:
        target = f"{self._contents}/{directory}"
        total, done = staged.size, 0
        self.storage.make_directory(target)
        progress(0, total)

        def upload(name: str) -> int:
            file = staged.files[name]
            check_unchanged(name, file)
            self.storage.upload(file.path, f"{target}/{name}")
            check_unchanged(name, file)
            return file.size

        with ThreadPoolExecutor(_THREADS, "submarine-dataset") as pool:
            for count in pool.map(upload, staged.files):
                done += count
                progress(done, total)

    def _check_free(self, name: str, digest: str, *, replaces: bool) -> None:
        known = None
        with suppress(SubmarineError):  # a malformed descriptor is replaced
            known = self._read(f"{self._names}/{name}{_SUFFIX}")
        if known is not None and known.digest != digest and not replaces:
            raise UsageError(
                _("The name {name} belongs to other data, of {digest}.").format(
                    name=name, digest=known.digest[:12]
                ),
                _("Choose another name, add --replace, or remove it with `data rm {name}`.").format(
                    name=name
                ),
            )

    def _descriptors(self, folder: str) -> list[Dataset]:
        try:
            entries = self.storage.list_directory(folder)
        except FileNotFoundError:
            return []
        paths = [f"{folder}/{entry.name}" for entry in entries if entry.name.endswith(_SUFFIX)]

        def read(path: str) -> Dataset | None:
            with suppress(SubmarineError):
                return self._read(path)
            return None

        with ThreadPoolExecutor(_THREADS, "submarine-dataset") as pool:
            return [found for found in pool.map(read, paths) if found is not None]

    def _read(self, path: str) -> Dataset | None:
        try:
            data = self.storage.read(path, 0, MAX_DESCRIPTOR)
        except FileNotFoundError:
            return None
        return self._located(parse_descriptor(data, self.storage.url(path)))

    def _located(self, dataset: Dataset) -> Dataset:
        return replace(dataset, uri=self.storage.url(self.path(dataset)))


def _to_bytes(dataset: Dataset) -> bytes:
    content: Mapping[str, object] = dataset.to_json()
    return json.dumps(content, indent=1).encode("ascii")
