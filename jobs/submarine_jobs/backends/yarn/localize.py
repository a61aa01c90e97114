"""``--localization`` and ``--archive`` in a container: what YARN brings beside the agent's files.

What travels under which condition is ``submarine_jobs.localization``. YARN brings each entry under
a plain name; the agent's script links it to its place in the program's directory.
"""

from __future__ import annotations

from submarine_jobs.backends.base import Submission
from submarine_jobs.backends.yarn.specification import ARCHIVE, FILE, File
from submarine_jobs.localization import brought, container_names, copy_of, on_hdfs


def localized_files(submission: Submission) -> dict[str, File]:
    """Name in the container -> its file, for every entry."""
    files: dict[str, File] = {}
    spec = submission.spec
    for name, item in container_names(brought(spec)).items():
        kind, source = (ARCHIVE if item in spec.archives else FILE), item.source
        if not on_hdfs(item):
            path, archived = copy_of(submission.storage, submission.job_dir, item)
            kind, source = (ARCHIVE if archived else FILE), submission.storage.url(path)
        files[name] = File(source, kind)
    return files
