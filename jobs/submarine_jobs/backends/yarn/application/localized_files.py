"""The files of ``--localization`` and ``--archive`` in a container, and their sizes.

``submarine_jobs.inputs.localization`` uploads them. YARN localizes each entry under a plain name,
and the script of the agent links it to its path in the program directory.
"""

from __future__ import annotations

from contextlib import suppress

from submarine_jobs.backends.base import Submission
from submarine_jobs.backends.yarn.application.specification import ARCHIVE, FILE, File
from submarine_jobs.errors import ClusterError
from submarine_jobs.inputs import container_names, find_copy, is_on_hdfs
from submarine_jobs.text import size
from submarine_runtime.translation import _, ngettext

#: Maximum number of files whose size is requested.
_MOST = 20


def files_to_localize(submission: Submission) -> dict[str, File]:
    """Name in the container -> its file, for every entry."""
    files: dict[str, File] = {}
    spec = submission.spec
    for name, item in container_names(spec):
        kind, source = (ARCHIVE if item in spec.archives else FILE), item.source
        if not is_on_hdfs(item):
            path, archived = find_copy(submission.storage, submission.job_dir, item)
            kind, source = (ARCHIVE if archived else FILE), submission.storage.url(path)
        files[name] = File(source, kind)
    return files


def describe_localized_files(submission: Submission, role: str) -> str:
    """``Python environment (1.4 GB), 2 files of --localization and --archive (30 MB)``.

    Describes the large files that the containers of a role localize; empty if there are none.
    Unknown sizes are omitted.
    """
    storage, words = submission.storage, []

    def sized(what: str, urls: list[str]) -> str:
        sizes = []
        for url in urls[:_MOST]:
            path = storage.path_of(url)
            with suppress(ClusterError):
                entry = storage.stat(path) if path is not None else None
                if entry is not None and not entry.is_directory:
                    sizes.append(entry.size)
        return f"{what} ({size(sum(sizes))})" if sizes and len(sizes) == len(urls) else what

    environment = submission.environments.get(role)
    if environment:
        words.append(sized(_("Python environment"), list(environment.archives)))
    files = [file.source for file in files_to_localize(submission).values()]
    if files:
        number = ngettext(
            "{count} file of --localization and --archive",
            "{count} files of --localization and --archive",
            len(files),
        )
        words.append(sized(number.format(count=len(files)), files))
    return ", ".join(words)
