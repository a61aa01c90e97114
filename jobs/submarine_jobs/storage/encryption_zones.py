"""Refuse paths in encryption zones of HDFS before a submission.

A file in a zone is encrypted and decrypted by its client, with a key of the cluster's key server
(KMS). YARN and hdfs-native do so. Agents use WebHDFS: there the DataNode needs the key as its own
user, which a key server usually refuses to users of HDFS.
"""

from __future__ import annotations

from submarine_jobs.errors import ConfigError, UsageError
from submarine_jobs.storage.base import Storage
from submarine_runtime.translation import _


def encryption_zone_error(what: str, url: str, fix: str) -> UsageError:
    """Return the refusal of a path.

    Parameters
    ----------
    what
        The option with its name or value, such as ``--input data``.
    fix
        What to do instead.
    """
    return UsageError(
        _(
            "{what}: {url} lies in an encryption zone of HDFS, where agents cannot read or write."
        ).format(what=what, url=url),
        fix,
    )


def check_job_root(storage: Storage, root: str) -> None:
    """Refuse a job root in an encryption zone.

    Raises
    ------
    ConfigError
        If it is in one.
    """
    if storage.in_encryption_zone(root):
        raise ConfigError(
            _(
                "The job root {url} lies in an encryption zone of HDFS, where agents cannot read "
                "or write."
            ).format(url=storage.url(root)),
            _("Set job_root in submarine.toml to a directory outside of encryption zones."),
        )
