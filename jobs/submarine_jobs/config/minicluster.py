"""The implicit profile ``minicluster``: the configuration of this user's own minicluster.

Starts nothing; a cluster that does not run is refused with the command that starts it.
"""

from __future__ import annotations

from submarine_jobs.errors import NoClusterError


def minicluster_values() -> dict[str, str]:
    """Keys of a profile that point at the running minicluster ``default``.

    Raises
    ------
    NoClusterError
        If it does not run.
    """
    from submarine_minicluster import Minicluster, MiniclusterError

    cluster = Minicluster()
    try:
        state = cluster.status().state
        variables = cluster.env()
    except MiniclusterError as exc:
        raise NoClusterError(
            "The profile minicluster was asked for, but no minicluster was ever started here.",
            "Start it with `submarine minicluster start`.",
        ) from exc
    if state != "running":
        raise NoClusterError(
            f"The profile minicluster was asked for, but the minicluster is {state}.",
            "Start it with `submarine minicluster start`.",
        )
    return {
        "backend": "yarn",
        "hadoop_conf_dir": variables["HADOOP_CONF_DIR"],
        "java_home": variables["JAVA_HOME"],
    }
