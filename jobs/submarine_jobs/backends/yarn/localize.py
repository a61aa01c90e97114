"""``--localization`` and ``--archive`` in a container: what YARN brings beside the agent's files.

What travels under which condition is ``submarine_jobs.localization``. YARN brings each entry under
a plain name; the agent's script links it to its place in the program's directory.
"""

from __future__ import annotations

from typing import Any

from submarine_jobs.backends.base import Submission
from submarine_jobs.backends.yarn.skein_calls import skein_module
from submarine_jobs.localization import brought, container_names, copy_of, on_hdfs


def localized_files(submission: Submission) -> dict[str, Any]:
    """Name in the container -> ``skein.File`` for every entry."""
    skein = skein_module()
    files: dict[str, Any] = {}
    spec = submission.spec
    for name, item in container_names(brought(spec)).items():
        kind, source = ("archive" if item in spec.archives else "file"), item.source
        if not on_hdfs(item):
            path, archived = copy_of(submission.storage, submission.job_dir, item)
            kind, source = ("archive" if archived else "file"), submission.storage.url(path)
        files[name] = skein.File(source=source, type=kind, visibility="application")
    return files
