"""Paths that a job reads: inputs, in any file system, checkpoints, and a job to resume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from submarine_jobs import inputs
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.inputs.advice import TaskInput
from submarine_jobs.inputs.listings import Listing, listed, read_manifest
from submarine_jobs.inputs.locations import (
    HUB,
    MAGIC,
    MANIFEST,
    REMOTE,
    WEB,
    FileSystems,
    Locator,
    Place,
    RemotePlace,
    scheme_of,
    without_user,
)
from submarine_jobs.inputs.output_targets import output_targets
from submarine_jobs.model import (
    JobSpec,
    NamedInput,
    NamedOutput,
    fetched_input,
    is_tensorboard,
)
from submarine_jobs.storage import Storage, encryption_zone_error
from submarine_runtime.agent.preparation import (
    WHOLE,
    SourceFile,
    divide,
    is_metadata,
    shard_of_task,
)
from submarine_runtime.frameworks import sharding_tasks
from submarine_runtime.protocol import InputSource, JobStore, expected_members, layout
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.inputs.huggingface import HubSnapshot


@dataclass(frozen=True)
class StorePaths:
    """Paths of a job in the store; see ``AgentConfig``.

    Parameters
    ----------
    publish
        The directories of ``--save-output``, without the job's name, and that of the model.
    listings
        Name of an input -> its files, which are published in the job directory.
    snapshots
        Name of an input -> the repository that the submission fetches to the cluster's cache.
    """

    fetch: tuple[NamedInput, ...] = ()
    publish: tuple[NamedOutput, ...] = ()
    checkpoint_path: str | None = None
    restore_from: str | None = None
    sources: Mapping[str, InputSource] = field(default_factory=dict)
    stores: Mapping[str, JobStore] = field(default_factory=dict)
    listings: Mapping[str, Listing] = field(default_factory=dict)
    snapshots: Mapping[str, HubSnapshot] = field(default_factory=dict)


NO_STORE_PATHS = StorePaths()


def resolve_store_paths(
    spec: JobSpec, storage: Storage, root: str, cluster: FileSystems | None = None
) -> StorePaths:
    """Resolve the URIs of ``spec`` to paths in the store; ``root`` is the job root.

    The files of inputs that tasks share, of patterns, of manifests and of other file systems are
    listed; nothing is written.

    Parameters
    ----------
    cluster
        The other file systems of the cluster; None: there are none.

    Raises
    ------
    UsageError
        If an input or the job to resume cannot be read by the job or does not exist, or a path is
        in an encryption zone.
    StorageError
        If a file system does not answer.
    """
    resolver = _Resolver(spec, storage, root, cluster)
    return replace(
        resolver.resolve(),
        publish=output_targets(spec, storage, root),
        checkpoint_path=_checkpoint_path(spec, storage),
        restore_from=_restore_from(spec, storage, root),
    )


def _checkpoint_path(spec: JobSpec, storage: Storage) -> str | None:
    """Return the path of the checkpoints; None: none, or the program writes them itself."""
    uri = spec.checkpoint_path
    if not uri:
        return None
    path = storage.path_of(uri)
    if path is None and "checkpoint_path" not in spec.passed_on:
        raise UsageError(
            _(
                "--checkpoint_path {uri} is not in the file system of the job "
                "directory, {prefix}, and no command, argument or environment variable uses "
                "%checkpoint_path%, so nothing would be written there."
            ).format(uri=without_user(uri)[:200], prefix=storage.prefix),
            _(
                "Give an absolute path in {prefix}, or pass %checkpoint_path% to the program."
            ).format(prefix=storage.prefix),
        )
    if path is not None and storage.in_encryption_zone(path):
        raise encryption_zone_error(
            "--checkpoint_path",
            storage.url(path),
            _("Name a directory outside of encryption zones."),
        )
    return path


class _Resolver:
    """Resolves the inputs of a spec."""

    def __init__(
        self, spec: JobSpec, storage: Storage, root: str, cluster: FileSystems | None
    ) -> None:
        self._spec, self._storage, self._cluster = spec, storage, cluster
        self._cache = f"{root}/{layout.RUNTIME_CACHE}"
        self._locator = Locator(storage, cluster)
        self._sources: dict[str, InputSource] = {}
        self._stores: dict[str, JobStore] = {}
        self._listings: dict[str, Listing] = {}
        self._snapshots: dict[str, HubSnapshot] = {}

    def resolve(self) -> StorePaths:
        """Return the inputs; the one for %input_path% comes first."""
        found = [self._input(item) for item in self._spec.inputs]
        first = fetched_input(self._spec)
        return StorePaths(
            # The agent fills %input_path% in with the first one.
            tuple(sorted(found, key=lambda item: item.name != first)),
            sources=self._sources,
            stores=self._stores,
            listings=self._listings,
            snapshots=self._snapshots,
        )

    def _input(self, item: NamedInput) -> NamedInput:
        option = f"--input {item.name}"
        if scheme_of(item.uri) == HUB:
            return self._repository(item, option)
        manifest = item.uri.startswith(MANIFEST)
        place = self._locator.find(option, item.uri.removeprefix(MANIFEST))
        if isinstance(place, RemotePlace) and not manifest:
            return self._remote(item, place)
        if isinstance(place, Place):
            self._check(item, place, manifest=manifest)
        if item.mode == "mount":
            url = place.uri if isinstance(place, RemotePlace) else place.url
            self._sources[item.name] = InputSource(url=url)
            return replace(item, uri=url)
        if manifest:
            listing = read_manifest(item, place, lambda uri: self._line(option, uri))
            self._add(item, listing, self._storage.prefix)
            return replace(item, uri=listing.base)
        assert isinstance(place, Place)
        if (
            item.mode == "download"
            and not item.shard
            and not place.prefix
            and self._is_plain(place)
        ):
            return replace(item, uri=place.path)
        self._note_store(place)
        listing = listed(item, place)
        _check_single(self._spec, item, listing, place.url)
        self._add(item, listing, self._storage.prefix)
        return replace(item, uri=f"{place.prefix}{place.path}")

    def _is_plain(self, place: Place) -> bool:
        return not MAGIC.search(place.path) or self._storage.stat(place.path) is not None

    def _line(self, option: str, uri: str) -> Place | RemotePlace:
        """Return the place of a line of a manifest."""
        place = self._locator.find(option, uri)
        if isinstance(place, Place):
            self._note_store(place)
        return place

    def _note_store(self, place: Place) -> None:
        if place.prefix:
            self._stores.setdefault(place.prefix, place.storage.job_store("/"))

    def _add(self, item: NamedInput, listing: Listing, url: str) -> None:
        self._listings[item.name] = listing
        self._sources[item.name] = InputSource(listing=listing_file(item.name), url=url)

    def _check(self, item: NamedInput, place: Place, *, manifest: bool) -> None:
        """Check that something is at a place, and that agents can read it."""
        path = place.path
        entry = place.storage.inspect(path)
        if entry is None and MAGIC.search(path) and not manifest:
            # The agents list the same pattern: check that it matches before the submission.
            if item.mode == "mount":
                listed(item, place)
            entry = place.storage.inspect(path[: _magic(path)].rpartition("/")[0] or "/")
        if entry is None:
            raise UsageError(
                _("--input {item}: there is no {url}.").format(item=item.name, url=place.url),
                _("Check the address."),
            )
        if entry.encrypted and item.mode in ("mount", "list") and not manifest:
            return  # The program's own reader decrypts.
        if entry.encrypted:
            raise encryption_zone_error(
                f"--input {item.name}",
                place.url,
                _(
                    "Use --localization, because YARN decrypts files, or let the program read it "
                    "by itself with --input_path."
                ),
            )

    def _remote(self, item: NamedInput, place: RemotePlace) -> NamedInput:
        """Return an input that the job's own fsspec reads; it is listed in the container."""
        if item.shard and item.mode != "stream" and scheme_of(item.uri) in WEB:
            _check_single(self._spec, item, Listing([], True, ""), place.uri)
        self._sources[item.name] = InputSource(url=place.uri)
        return item

    def _repository(self, item: NamedInput, option: str) -> NamedInput:
        """Return an input that is a repository of the Hugging Face hub."""
        snapshot = inputs.find_snapshot(option, item.uri, self._storage, self._cache)
        self._snapshots[item.name] = snapshot
        directory = snapshot.directory
        if item.mode == "mount":
            self._sources[item.name] = InputSource(url=self._storage.url(directory))
            return replace(item, uri=self._storage.url(directory))
        files = [
            SourceFile(file.path, file.size, f"{directory}/{file.path}") for file in snapshot.files
        ]
        if item.mode in ("list", "stream"):
            files = [file for file in files if not is_metadata(file.path)]
        self._add(item, Listing(files, False, f"{directory}/"), self._storage.prefix)
        if not item.shard:
            self._sources[item.name] = replace(
                self._sources[item.name],
                hub=snapshot.repository.folder,
                commit=snapshot.commit,
                refs=snapshot.refs,
            )
        return replace(item, uri=directory)


def listing_file(name: str) -> str:
    """Return the path of an input's listing in the job directory."""
    return f"{layout.INPUTS}/{name}.json.gz"


def with_commits(spec: JobSpec, reached: StorePaths) -> JobSpec:
    """Return the spec with the commits of repositories, so that a rerun uses the same ones."""
    return replace(
        spec,
        inputs=tuple(
            replace(item, uri=reached.snapshots[item.name].uri)
            if item.name in reached.snapshots
            else item
            for item in spec.inputs
        ),
    )


def _magic(path: str) -> int:
    match = MAGIC.search(path)
    return match.start() if match else len(path)


def _check_single(spec: JobSpec, item: NamedInput, listing: Listing, url: str) -> None:
    """Refuse to divide one file."""
    if (
        listing.single
        and item.shard
        and item.mode != "stream"
        and len(tasks_sharing(spec, item)) > 1
    ):
        raise UsageError(
            _(
                "--input {item}: {url} is one file, and :{mode} divides the files of a directory."
            ).format(item=item.name, url=url, mode=item.word),
            _("Leave :{mode} out, or name a directory.").format(mode=item.word),
        )


def inputs_of_tasks(
    spec: JobSpec, storage: Storage, root: str, reached: StorePaths
) -> list[TaskInput]:
    """Return the input files of each task, by the same rules as the agents.

    Raises
    ------
    UsageError
        If an input has too many files, or a name that no task could use.
    StorageError
        If the file system does not answer.
    """
    members = expected_members(spec.roles)
    tensorboards = {role.name for role in spec.roles if is_tensorboard(role)}
    found: list[TaskInput] = []
    for one in reached.fetch:
        files = _files_of(one, storage, root, reached)
        sharing = tasks_sharing(spec, one) if one.shard and spec.distributed else []
        parts_of_input: dict[int, list[list[SourceFile]]] = {0: [[]]}
        for member in members:
            if member.role in tensorboards:
                continue
            if files is None:
                found.append(TaskInput(member.task, one.name, None, None, one.word))
                continue
            part = shard_of_task(member.task, sharing) if sharing else WHOLE
            if one.mode == "stream":
                read = files if part.count else []
                known = all(file.size or "://" not in file.source for file in read)
                size = sum(file.size for file in read) // max(1, part.count) if known else None
                found.append(TaskInput(member.task, one.name, len(read), size, one.word))
                continue
            if part.count not in parts_of_input:
                metadata = one.mode != "list"
                parts_of_input[part.count] = divide(files, part.count, metadata=metadata)
            given = parts_of_input[part.count][part.index]
            size = sum(file.size for file in given)
            known = not any(file.size == 0 and "://" in file.source for file in given)
            found.append(
                TaskInput(member.task, one.name, len(given), size if known else None, one.word)
            )
    return found


def _files_of(
    one: NamedInput, storage: Storage, root: str, reached: StorePaths
) -> list[SourceFile] | None:
    """Return the files of an input; None: only the job knows them."""
    if one.name in reached.listings:
        return reached.listings[one.name].files
    if one.name in reached.snapshots:
        return [SourceFile(file.path, file.size) for file in reached.snapshots[one.name].files]
    path = one.uri if one.uri.startswith("/") else None
    if one.mode == "mount":
        path = storage.path_of(one.uri) if scheme_of(one.uri) not in REMOTE else None
    if path is None:
        return None
    place = Place(storage, path)
    if one.mode == "mount":
        try:
            return listed(one, place).files
        except SubmarineError:
            return None  # The program may read more files than an agent would list.
    return listed(one, place).files


def tasks_sharing(spec: JobSpec, one: NamedInput) -> list[str]:
    """Return the tasks that share the files of a ``:shard`` input, by the rules of the agents."""
    members = expected_members(spec.roles)
    return sharding_tasks(spec.framework, spec.env, members, one.shard_roles)


def _restore_from(spec: JobSpec, storage: Storage, root: str) -> str | None:
    if not spec.resume_from:
        return None
    if not layout.is_job_id(spec.resume_from):
        raise UsageError(
            _("{job!r} is not a job id.").format(job=spec.resume_from[:80]),
            _("One looks like digits-20261120-7f3a."),
        )
    path = layout.job_directory(root, spec.resume_from)
    if storage.stat(path) is None:
        raise UsageError(
            _("There is no job {job} to resume in {url}.").format(
                job=spec.resume_from, url=storage.url(root)
            ),
            _("`submarine list` lists all jobs."),
        )
    return path
