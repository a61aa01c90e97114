"""Fetch repositories of the Hugging Face hub once, into the cache of the job root.

``hf://ORG/NAME@REV`` is a model, ``hf://datasets/ORG/NAME@REV`` a dataset. The submission downloads
the files of the commit and uploads them to the layout of huggingface_hub's own cache
(``hub/models--ORG--NAME/refs`` and ``snapshots``), which its libraries read without a network. The
agents fetch them from there, like any other input. huggingface_hub is not needed: five requests of
plain HTTP suffice, and the files go to HDFS one by one, so that a large repository needs the local
disk for its largest file only.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import quote, urljoin, urlsplit

from submarine_jobs import concurrency
from submarine_jobs.config import make_private
from submarine_jobs.errors import ClusterError, UsageError
from submarine_jobs.storage import Storage
from submarine_runtime.network import check_complete
from submarine_runtime.translation import _

ENDPOINT = "https://huggingface.co"
#: Directory of the cache below that of the job root, and the records of its complete snapshots.
DIRECTORY, COMPLETE = "hf/hub", "hf/complete"
DEFAULT_REVISION = "main"
_URI = re.compile(r"hf://(datasets/)?([\w.-]+/[\w.-]+?)(?:@([^@\s]+))?/?\Z", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}\Z")
_NEXT = re.compile(r'<([^>]+)>\s*;\s*rel="next"')
_TIMEOUT = 30.0
_ATTEMPTS = 4
_COPY_BYTES = 1 << 20
_MAX_ANSWER = 64 << 20
_TRUE = ("1", "true", "yes", "on")
#: Called with a sentence, the bytes so far and the total.
Progress = Callable[[str, int, int], None]


class Repository(NamedTuple):
    """A repository of the hub at a revision: ``model`` or ``dataset``, ``ORG/NAME``."""

    kind: str
    name: str
    revision: str = DEFAULT_REVISION

    @property
    def folder(self) -> str:
        """Its directory in the cache: ``models--ORG--NAME``."""
        return f"{self.kind}s--{self.name.replace('/', '--')}"

    @property
    def uri(self) -> str:
        """Its URI without a revision."""
        prefix = "datasets/" if self.kind == "dataset" else ""
        return f"hf://{prefix}{self.name}"


class HubFile(NamedTuple):
    """A file: path, bytes, and its SHA-256 or, for a file in git, the SHA-1 of its blob."""

    path: str
    size: int
    digest: str


@dataclass(frozen=True)
class HubSnapshot:
    """The files of a repository at a commit.

    Parameters
    ----------
    cache
        Directory that all jobs share, ``<job root>/cache``.
    """

    repository: Repository
    commit: str
    files: tuple[HubFile, ...]
    cache: str

    @property
    def uri(self) -> str:
        """The URI with the commit."""
        return f"{self.repository.uri}@{self.commit}"

    @property
    def refs(self) -> tuple[str, ...]:
        """The names that mean this commit in a job; programs that name none ask for ``main``."""
        revision = self.repository.revision
        return tuple(
            name for name in dict.fromkeys((DEFAULT_REVISION, revision)) if not _COMMIT.match(name)
        )

    @property
    def directory(self) -> str:
        """The directory of the files in the cache."""
        return f"{self.cache}/{DIRECTORY}/{self.repository.folder}/snapshots/{self.commit}"

    @property
    def record(self) -> str:
        """The file that is written when all files are in the cache."""
        return f"{self.cache}/{COMPLETE}/{self.repository.folder}/{self.commit}.json"

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def parse_repository(option: str, uri: str) -> Repository:
    """Return the repository that ``hf://[datasets/]ORG/NAME[@REV]`` names.

    Raises
    ------
    UsageError
        If the URI has another form.
    """
    match = _URI.match(uri)
    revision = (match[3] if match else None) or DEFAULT_REVISION
    if not match or any(
        part in ("", ".", "..") for part in (*match[2].split("/"), *revision.split("/"))
    ):
        raise UsageError(
            _("{option}: {uri} is not hf://ORG/NAME@REVISION.").format(
                option=option, uri=uri[:200]
            ),
            _("A dataset is hf://datasets/ORG/NAME@REVISION; without @REVISION it is main."),
        )
    return Repository("dataset" if match[1] else "model", match[2], revision)


def find_snapshot(option: str, uri: str, storage: Storage, cache: str) -> HubSnapshot:
    """Return the snapshot of a URI; nothing is downloaded.

    A commit that is in the cache needs no request. With ``HF_HUB_OFFLINE`` only the cache is used.

    Raises
    ------
    UsageError
        If there is no such repository or revision, or you may not read it.
    ClusterError
        If the hub does not answer.
    """
    repository = parse_repository(option, uri)
    revision = repository.revision
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in _TRUE:
        commit = revision
        if not _COMMIT.match(revision):
            reference = f"{cache}/{DIRECTORY}/{repository.folder}/refs/{revision}"
            known = storage.stat(reference) is not None
            commit = storage.read(reference).decode().strip() if known else ""
        found = _recorded(HubSnapshot(repository, commit, (), cache), storage) if commit else None
        if found is None:
            raise UsageError(
                _("{option}: {uri} is not in the cache {cache}.").format(
                    option=option, uri=uri, cache=storage.url(f"{cache}/{DIRECTORY}")
                ),
                _("Unset HF_HUB_OFFLINE to fetch it."),
            )
        return found
    if _COMMIT.match(revision):
        found = _recorded(HubSnapshot(repository, revision, (), cache), storage)
        if found is not None:
            return found
    client = _Client(option, repository)
    commit = client.commit()
    found = _recorded(HubSnapshot(repository, commit, (), cache), storage)
    return found or HubSnapshot(repository, commit, tuple(client.files(commit)), cache)


def fetch_snapshot(
    snapshot: HubSnapshot, storage: Storage, state_dir: Path, progress: Progress
) -> None:
    """Download the files of a snapshot to the cache, unless they are there.

    Of two concurrent submissions of this machine the second waits. An interrupted download resumes
    at the same byte of the same file.

    Raises
    ------
    UsageError
        If a file cannot be read, or its content is not that of the commit.
    ClusterError
        If the hub or the file system does not answer.
    """
    if _recorded(snapshot, storage) is None:
        scratch = state_dir / "hf" / f"{snapshot.repository.folder}-{snapshot.commit}"
        make_private(scratch)
        with concurrency.file_lock(scratch.with_suffix(".lock")):
            if _recorded(snapshot, storage) is None:
                _fetch(snapshot, storage, scratch, progress)
        shutil.rmtree(scratch, ignore_errors=True)
    for name in snapshot.refs:
        if name == snapshot.repository.revision:
            refs = f"{snapshot.cache}/{DIRECTORY}/{snapshot.repository.folder}/refs"
            storage.publish(f"{refs}/{name}", snapshot.commit.encode())


def _fetch(snapshot: HubSnapshot, storage: Storage, scratch: Path, progress: Progress) -> None:
    step = _("Fetching {uri} to the cache of the cluster").format(uri=snapshot.uri)
    client = _Client(snapshot.uri, snapshot.repository)
    done = 0
    for file in snapshot.files:
        target = f"{snapshot.directory}/{file.path}"
        entry = storage.stat(target)
        if entry is None or entry.size != file.size:
            local = scratch / hashlib.sha256(file.path.encode()).hexdigest()[:32]
            for size in client.download(snapshot.commit, file, local):
                progress(step, done + size, snapshot.size)
            storage.upload(local, target)
            local.unlink()
        done += file.size
        progress(step, done, snapshot.size)
    rows = [list(file) for file in snapshot.files]
    storage.publish(snapshot.record, json.dumps({"version": 1, "files": rows}).encode())


def _recorded(snapshot: HubSnapshot, storage: Storage) -> HubSnapshot | None:
    """Return a snapshot with its files if all of them are in the cache."""
    if storage.stat(snapshot.record) is None:
        return None
    rows = json.loads(storage.read(snapshot.record))["files"]
    files = tuple(HubFile(str(path), int(size), str(digest)) for path, size, digest in rows)
    return HubSnapshot(snapshot.repository, snapshot.commit, files, snapshot.cache)


class _SameHostRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects; the token goes to the hub's own host only."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Any,
        newurl: str,
    ) -> urllib.request.Request | None:
        found = super().redirect_request(req, fp, code, msg, headers, newurl)
        token = req.unredirected_hdrs.get("Authorization")
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        if found is not None and token and (old.scheme, old.netloc) == (new.scheme, new.netloc):
            found.add_unredirected_header("Authorization", token)
        return found


class _Client:
    """Requests to the hub: HF_ENDPOINT, with HF_TOKEN.

    Parameters
    ----------
    option
        Begins the messages.
    """

    def __init__(self, option: str, repository: Repository) -> None:
        self._option, self._repository = option, repository
        self._endpoint = (os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")
        self._token = os.environ.get("HF_TOKEN") or ""
        if urlsplit(self._endpoint).scheme not in ("http", "https"):
            raise UsageError(
                _("HF_ENDPOINT is {url!r}, which is not an http address.").format(
                    url=self._endpoint[:200]
                )
            )
        self._opener = urllib.request.build_opener(_SameHostRedirects)

    @property
    def _api(self) -> str:
        return f"{self._endpoint}/api/{self._repository.kind}s/{self._repository.name}"

    def commit(self) -> str:
        """Return the commit of the revision."""
        revision = quote(self._repository.revision, safe="")
        answer, _link = self._json(f"{self._api}/revision/{revision}")
        commit = str(answer.get("sha")) if isinstance(answer, dict) else ""
        if not _COMMIT.match(commit):
            raise self._no_answer(_("its answer has no commit"))
        return commit

    def files(self, commit: str) -> Iterator[HubFile]:
        """Yield the files of a commit."""
        url = f"{self._api}/tree/{commit}?recursive=true"
        while url:
            answer, link = self._json(url)
            for entry in answer if isinstance(answer, list) else ():
                if not isinstance(entry, dict) or entry.get("type") != "file":
                    continue
                large = entry.get("lfs") or {}
                path = str(entry["path"])
                if any(part in ("", ".", "..") for part in path.split("/")) or "\0" in path:
                    raise self._no_answer(_("a file is named {path!r}").format(path=path))
                digest = str(large.get("oid") or entry.get("oid") or "")
                yield HubFile(path, int(large.get("size") or entry.get("size") or 0), digest)
            following = _NEXT.search(link)
            url = urljoin(url, following[1]) if following else ""

    def download(self, commit: str, file: HubFile, target: Path) -> Iterator[int]:
        """Download a file and check it; yield the bytes so far. An earlier part is continued."""
        prefix = "datasets/" if self._repository.kind == "dataset" else ""
        url = (
            f"{self._endpoint}/{prefix}{self._repository.name}/resolve/{commit}/{quote(file.path)}"
        )
        for attempt in range(_ATTEMPTS):
            got = target.stat().st_size if target.exists() else 0
            if got > file.size:
                target.unlink()
                got = 0
            try:
                if got < file.size or not target.exists():
                    yield from self._transfer(url, target, got)
            except (ClusterError, OSError, http.client.HTTPException) as exc:
                if isinstance(exc, OSError) and exc.filename:
                    raise  # An error of the local disk.
                if attempt == _ATTEMPTS - 1:
                    if isinstance(exc, ClusterError):
                        raise
                    raise self._no_answer(exc) from exc
                time.sleep(0.2 * 4**attempt)
                continue
            if _digest_is(target, file):
                return
            target.unlink()
        raise UsageError(
            _("{option}: the content of {path} is not that of the commit {commit}.").format(
                option=self._option, path=file.path, commit=commit
            ),
            _("Check HF_ENDPOINT; a mirror or proxy may change files."),
        )

    def _transfer(self, url: str, target: Path, start: int) -> Iterator[int]:
        headers = {"Range": f"bytes={start}-"} if start else {}
        with closing(self._open(url, headers)) as reply:
            appends = start and reply.status == http.client.PARTIAL_CONTENT
            got = start if appends else 0
            with target.open("ab" if appends else "wb") as stream:
                while piece := reply.read(_COPY_BYTES):
                    stream.write(piece)
                    got += len(piece)
                    yield got
            check_complete(reply)

    def _json(self, url: str) -> tuple[Any, str]:
        """Return the JSON of an answer, and its header ``Link``."""
        try:
            with closing(self._open(url, {})) as reply:
                data = reply.read(_MAX_ANSWER)
                check_complete(reply, data)
                return json.loads(data), str(reply.headers.get("Link") or "")
        except (OSError, ValueError, http.client.HTTPException) as exc:
            raise self._no_answer(exc) from exc

    def _open(self, url: str, headers: dict[str, str]) -> Any:
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - the scheme is checked
        if self._token:
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        try:
            return self._opener.open(request, timeout=_TIMEOUT)
        except urllib.error.HTTPError as exc:
            exc.close()
            raise self._refusal(exc) from None
        except (OSError, http.client.HTTPException) as exc:
            raise self._no_answer(exc) from exc

    def _refusal(self, exc: urllib.error.HTTPError) -> UsageError | ClusterError:
        code = str(exc.headers.get("X-Error-Code") or "")
        repository, revision = self._repository.uri, self._repository.revision
        if exc.code in (401, 403):
            hint = (
                _("Accept its conditions on the hub's page, or use a token that may read it.")
                if self._token
                else _("Check the name; a private repository needs HF_TOKEN in your environment.")
            )
            return UsageError(
                _("{option}: the hub refuses {repository} (status {status}).").format(
                    option=self._option, repository=repository, status=exc.code
                ),
                hint,
            )
        if exc.code == 404:
            what = repository if code == "RepoNotFound" else f"{repository}@{revision}"
            return UsageError(
                _("{option}: the hub has no {repository}.").format(
                    option=self._option, repository=what
                ),
                _("Check name and revision."),
            )
        return self._no_answer(_("status {status}").format(status=exc.code))

    def _no_answer(self, reason: object) -> ClusterError:
        text = getattr(reason, "reason", None) or reason
        return ClusterError(
            _("{option}: {endpoint} cannot be read: {reason}.").format(
                option=self._option, endpoint=self._endpoint, reason=str(text).rstrip(".")
            ),
            _("Check the network; HF_ENDPOINT names another server of the hub."),
        )


def _digest_is(path: Path, file: HubFile) -> bool:
    """Return whether a file has the digest of its commit; one of unknown form is not checked."""
    if path.stat().st_size != file.size:
        return False
    with path.open("rb") as stream:
        if len(file.digest) == 64:
            return hashlib.file_digest(stream, "sha256").hexdigest() == file.digest
        if len(file.digest) != 40:
            return True
        found = hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)
        while piece := stream.read(_COPY_BYTES):
            found.update(piece)
        return found.hexdigest() == file.digest
