"""The default file system of a cluster, with the identity of a profile."""

from __future__ import annotations

from submarine_jobs.backends.yarn.cluster.hadoop_configuration import HadoopConf
from submarine_jobs.backends.yarn.cluster.identity import Identity
from submarine_jobs.model import Profile
from submarine_jobs.storage import Storage, hdfs_storage


def default_file_system(profile: Profile, conf: HadoopConf, identity: Identity) -> Storage:
    """Return the storage of ``fs.defaultFS``."""
    return hdfs_storage(
        conf.default_fs,
        conf_dir=conf.directory,
        webhdfs=conf.webhdfs,
        addresses=conf.addresses,
        user=identity.user,
        access=identity.file_system_access,
        process_wide=identity.process_wide,
        timeout=profile.timeout,
        gateway=bool(conf.gateway),
    )
