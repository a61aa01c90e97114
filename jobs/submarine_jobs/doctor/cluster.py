"""Checks of the cluster: ResourceManager, clock, queues, ports, HDFS, WebHDFS."""

from __future__ import annotations

import http.client
import json
import socket
import time
import uuid
from email.utils import parsedate_to_datetime
from urllib.parse import quote, urlsplit

from submarine_jobs.backends.yarn.cluster import find, largest_node, queues as all_queues
from submarine_jobs.doctor.context import DoctorContext
from submarine_jobs.doctor.result import Finding, error, ok, skipped, warning
from submarine_jobs.errors import ClusterError

_TIMEOUT = 5.0
MAX_SKEW = 30.0


def resourcemanager(context: DoctorContext) -> Finding:
    """Check that the REST interface answers and that there are usable nodes."""
    info = (context.rm_response("/info") or {}).get("clusterInfo") or {}
    version = str(info.get("hadoopVersion") or info.get("resourceManagerVersion") or "unknown")
    most, nodes = largest_node(context.rm_response("/nodes"))
    if not nodes:
        return error(
            f"The ResourceManager {context.yarn.rm.url} has no usable node.",
            "Start the NodeManagers, or see why they are unhealthy on its nodes page.",
        )
    return ok(
        f"{context.yarn.rm.url}, Hadoop {version[:40]}: {nodes} nodes, the largest with "
        f"{most.memory} MiB, {most.vcores} vcores, {most.gpus} GPUs."
    )


def clock(context: DoctorContext) -> Finding:
    """Compare the clock of this machine with that of the ResourceManager."""
    before = time.time()
    headers, _ = _get(context.yarn.rm.url, "/ws/v1/cluster/info")
    now = (before + time.time()) / 2
    stamp = headers.get("date")
    if not stamp:
        return skipped("The ResourceManager does not say what time it has.")
    try:
        skew = now - parsedate_to_datetime(stamp).timestamp()
    except ValueError:
        return skipped("The ResourceManager's time cannot be read.")
    if abs(skew) > MAX_SKEW:
        return warning(
            f"This clock is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the "
            "ResourceManager's.",
            "Let NTP set both; times in job records will disagree, and Kerberos fails at 300 s.",
        )
    return ok(f"This clock and the ResourceManager's differ by less than {abs(skew) + 1:.0f} s.")


def queues(context: DoctorContext) -> Finding:
    """Check that the scheduler has queues, and the queue of the profile."""
    found = all_queues(context.rm_response("/scheduler"))
    leaves = [queue.name for queue in found if queue.leaf and queue.running]
    listed = ", ".join(leaves[:20]) + (" …" if len(leaves) > 20 else "")
    name = context.profile.queue
    if not leaves:
        return error("The scheduler has no running queue.", "Ask the operator.")
    if name and (queue := find(found, name)) is None:
        return error(f"There is no queue {name}; there are {listed}.", "Set queue aright.")
    if name and not (queue and queue.leaf and queue.running):
        return error(f"The queue {name} takes no jobs now.", f"Choose one of {listed}.")
    return ok(f"Queues that take jobs: {listed}.")


def ports(context: DoctorContext) -> Finding:
    """Check that each address that a submission needs accepts a connection."""
    conf = context.conf
    addresses: list[tuple[str, str]] = [
        *(("ResourceManager web", urlsplit(url).netloc) for url in conf.resourcemanagers),
        *(("WebHDFS", urlsplit(url).netloc) for url in conf.webhdfs),
    ]
    file_system = urlsplit(conf.default_fs).netloc
    if conf.words(f"dfs.ha.namenodes.{file_system}"):
        for name in conf.words(f"dfs.ha.namenodes.{file_system}"):
            key = f"dfs.namenode.rpc-address.{file_system}.{name}"
            addresses.append(("NameNode", conf.get(key)))
    else:
        addresses.append(("NameNode", file_system if ":" in file_system else f"{file_system}:8020"))
    rpc = conf.get("yarn.resourcemanager.address")
    if rpc:
        addresses.append(("ResourceManager", rpc))
    closed = [f"{what} {address}: {why}" for what, address in addresses if (why := _dial(address))]
    if len(closed) == len(addresses):
        return error(
            f"Nothing of the cluster can be reached: {'; '.join(closed)}.",
            "Check network, VPN and firewall, and that HADOOP_CONF_DIR or hadoop_conf_dir "
            f"({conf.directory}) is the configuration of this cluster.",
        )
    if closed:
        return warning(
            f"Cannot be reached: {'; '.join(closed)}.",
            "With high availability one of a pair may be down; else check the firewall.",
        )
    return ok(f"All {len(addresses)} addresses accept connections.")


def hdfs(context: DoctorContext) -> Finding:
    """Write, read and remove a file in the job root."""
    storage, root = context.yarn.job_root()
    path = f"{root}/.submarine-doctor-{uuid.uuid4().hex[:12]}"
    data = b"doctor"
    started = time.monotonic()
    storage.make_directory(root)
    storage.publish(path, data)
    try:
        read = storage.read(path)
    finally:
        storage.delete(path)
    if read != data:
        return error(
            f"{storage.url(path)} did not give back what was written.", "Ask the operator."
        )
    seconds = time.monotonic() - started
    if seconds > 5:
        return warning(
            f"Writing, reading and removing a small file in {storage.url(root)} took "
            f"{seconds:.1f} s.",
            "The NameNode is slow or far away; submits will be too.",
        )
    return ok(f"{storage.url(root)} can be written and read ({seconds * 1000:.0f} ms).")


def webhdfs(context: DoctorContext) -> Finding:
    """Check WebHDFS, through which containers access the job directory."""
    conf = context.conf
    if conf.get("dfs.webhdfs.enabled", "true").lower() == "false":
        return error(
            "WebHDFS is switched off (dfs.webhdfs.enabled), and containers need it.",
            "Operators: set dfs.webhdfs.enabled to true on NameNodes and DataNodes.",
        )
    trouble = ""
    for url in conf.webhdfs:
        try:
            user = quote(context.yarn.user, safe="")
            _, body = _get(url, f"/webhdfs/v1/?op=GETFILESTATUS&user.name={user}")
            answer = json.loads(body)
            if isinstance(answer, dict) and "FileStatus" in answer:
                return ok(f"{url} answers.")
            trouble = f"{url} answers without a file status"
        except (ClusterError, ValueError) as exc:
            trouble = str(exc) or f"{url} answers with something else than JSON"
    return error(
        f"WebHDFS does not work: {trouble or 'no address is configured'}",
        "Check dfs.namenode.http-address, and that nothing in between is a proxy.",
    )


def _get(base: str, path: str) -> tuple[dict[str, str], bytes]:
    """Return headers (names in lower case) and body of a small GET request without a proxy."""
    parts = urlsplit(base)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=_TIMEOUT)
    try:
        connection.request("GET", path)
        with connection.getresponse() as reply:
            return {key.lower(): value for key, value in reply.getheaders()}, reply.read(1 << 20)
    except (OSError, http.client.HTTPException) as exc:
        raise ClusterError(f"{base} does not answer: {exc}.", "Check that it is up.") from exc
    finally:
        connection.close()


def _dial(address: str) -> str:
    """Return why ``host:port`` cannot be reached; empty if it can."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        return "is no host:port"
    try:
        with socket.create_connection((host, int(port)), timeout=3):
            return ""
    except OSError as exc:
        return exc.strerror or str(exc) or type(exc).__name__
