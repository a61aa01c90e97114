"""Publish to an object store through fsspec: no rename, so the manifest decides.

Files are written to their final names and the manifest last. A directory without a manifest is not
a version, so an interrupted publication is not visible to a reader of manifests, and the next one
writes the files again. A version cannot be replaced: a reader could see a mixture.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from typing import Any

from submarine_jobs.errors import StorageError, UsageError
from submarine_jobs.trained_models.directories import (
    ALIASES,
    alias_content,
)
from submarine_jobs.trained_models.source import ModelSource, copy_hashed
from submarine_runtime.publication import MODEL_MANIFEST, new_manifest
from submarine_runtime.snapshots import digest_of
from submarine_runtime.translation import _


class ObjectStore:
    """One version of a model in an object store.

    Parameters
    ----------
    uri
        ``s3://bucket/models/digits/7``; the scheme is that of an implementation of fsspec, whose
        configuration has the credentials. hdfs-native installs fsspec.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri.rstrip("/")

    @cached_property
    def _place(self) -> tuple[Any, str]:
        try:
            file_system, path = import_module("fsspec.core").url_to_fs(self.uri)
        except (ImportError, ValueError, OSError) as exc:
            raise UsageError(
                _("--to {uri} cannot be opened by fsspec: {error}.").format(
                    uri=self.uri[:200], error=str(exc).rstrip(".")
                ),
                _("Install the package that it names, such as s3fs for s3://."),
            ) from exc
        return file_system, str(path)

    def publish(
        self, source: ModelSource, origin: Mapping[str, Any], *, overwrite: bool
    ) -> tuple[dict[str, Any], bool]:
        """Write files and manifest; return the manifest, and whether it was there already.

        Raises
        ------
        UsageError
            If another version or other files are there.
        StorageError
            If the store fails; the call can be repeated.
        """
        file_system, path = self._place
        try:
            # Never from a cache: another process may have published.
            file_system.invalidate_cache()
            return self._publish(file_system, path, source, origin, overwrite)
        except OSError as exc:
            raise StorageError(
                _("{uri} was not published: {error}.").format(uri=self.uri[:200], error=exc),
                _("Run the command again."),
            ) from exc

    def _publish(
        self,
        file_system: Any,
        path: str,
        source: ModelSource,
        origin: Mapping[str, Any],
        overwrite: bool,
    ) -> tuple[dict[str, Any], bool]:
        manifest_path = f"{path}/{MODEL_MANIFEST}"
        files = [{"path": name, "sha256": sha256} for name, sha256 in source.hashes()]
        digest = digest_of(files)
        if file_system.exists(manifest_path):
            there = json.loads(file_system.cat_file(manifest_path))
            if there.get("digest") == digest:
                return there, True
            fix = (
                _("An object store has no rename, so --overwrite could show a mixture.")
                if overwrite
                else ""
            )
            raise UsageError(
                _("{uri} exists already.").format(uri=self.uri[:200]),
                f"{fix} {_('Publish under another name.')}".strip(),
            )
        there = {str(name)[len(path) :].lstrip("/") for name in file_system.find(path)}
        if strange := sorted(there - set(source.files)):
            raise UsageError(
                _("{uri} has files that are not of this model, such as {name!r}.").format(
                    uri=self.uri[:200], name=strange[0][:200]
                ),
                _("Publish under another name."),
            )
        for entry in files:
            entry["sha256"] = self._put(file_system, path, source, entry["path"])
            source.check(entry["path"], entry["sha256"])
        listed = [{**entry, "size": source.files[entry["path"]]} for entry in files]
        manifest = new_manifest(origin, listed)
        file_system.pipe_file(manifest_path, json.dumps(manifest, indent=1).encode())
        return manifest, False

    @staticmethod
    def _put(file_system: Any, path: str, source: ModelSource, name: str) -> str:
        target = f"{path}/{name}"
        # A file system with directories; an object store does nothing.
        file_system.makedirs(target.rpartition("/")[0], exist_ok=True)
        with file_system.open(target, "wb") as file:
            return copy_hashed(source.blocks(name)(), file)

    def switch_alias(self, alias: str, manifest: Mapping[str, Any]) -> None:
        """Let an alias name this version, by writing one object."""
        file_system, path = self._place
        parent, _slash, version = path.rpartition("/")
        data = alias_content(alias, version, manifest)
        folder = f"{parent}/{ALIASES}"
        try:
            file_system.makedirs(folder, exist_ok=True)
            file_system.pipe_file(f"{folder}/{alias}.json", data)
        except OSError as exc:
            raise StorageError(
                _("The alias {alias} was not switched: {error}.").format(alias=alias, error=exc),
                _("Run the command again."),
            ) from exc
