"""Checks of the cluster: ResourceManager, clock, queues, ports, HDFS, WebHDFS."""

from __future__ import annotations

import socket
import time
import uuid
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from submarine_jobs.doctor.context import DoctorContext
from submarine_jobs.doctor.result import Finding, error, ok, skipped, warning
from submarine_jobs.errors import ClusterError
from submarine_runtime.cluster_http import Access, Answer, HttpClient, NoAnswerError
from submarine_runtime.translation import _
from submarine_runtime.yarn import find_queue, largest_node, queues_of

_TIMEOUT = 5.0
MAX_SKEW = 30.0
#: The default of Kerberos.
_KERBEROS_SKEW = 300.0


def resourcemanager(context: DoctorContext) -> Finding:
    """Check that the REST interface answers and that there are usable nodes."""
    info = (context.rm_response("/info") or {}).get("clusterInfo") or {}
    version = str(info.get("hadoopVersion") or info.get("resourceManagerVersion") or "unknown")
    most, nodes = largest_node(context.yarn.nodes())
    if not nodes:
        return error(
            _("The ResourceManager {url} has no usable node.").format(url=context.yarn.rm.url),
            _("Start the NodeManagers, or see why they are unhealthy on its nodes page."),
        )
    return ok(
        _(
            "{url}, Hadoop {version}: {nodes} nodes, the largest with {memory} MiB, {vcores} "
            "vcores, {gpus} GPUs."
        ).format(
            url=context.yarn.rm.url,
            version=version[:40],
            nodes=nodes,
            memory=most.memory,
            vcores=most.vcores,
            gpus=most.gpus,
        )
    )


def clock(context: DoctorContext) -> Finding:
    """Compare the clock of this machine with that of the ResourceManager."""
    access, extra = context.yarn.identity.access, {}
    if context.conf.kerberos:
        # A wrong clock prevents the sign-in. The refusal of an invalid token has the time, that of
        # a request without any has not.
        access, extra = Access(ca=access.ca), {"X-Hadoop-Delegation-Token": "none"}
    client = HttpClient(context.conf.resourcemanagers, access=access, timeout=_TIMEOUT)
    before = time.time()
    try:
        headers = client.request("GET", "/ws/v1/cluster/info", headers=extra).headers
    except NoAnswerError as exc:
        return skipped(_("The ResourceManager does not answer: {error}.").format(error=exc))
    now = (before + time.time()) / 2
    stamp = headers.get("date")
    if not stamp:
        return skipped(_("The ResourceManager does not say what time it has."))
    try:
        skew = now - parsedate_to_datetime(stamp).timestamp()
    except ValueError:
        return skipped(_("The ResourceManager's time cannot be read."))
    if abs(skew) > MAX_SKEW:
        refused = context.conf.kerberos and abs(skew) > _KERBEROS_SKEW
        return (error if refused else warning)(
            (
                _("This clock is {skew:.0f} s ahead of the ResourceManager's.")
                if skew > 0
                else _("This clock is {skew:.0f} s behind the ResourceManager's.")
            ).format(skew=abs(skew)),
            _(
                "Synchronize both with NTP; times in job records will disagree, and Kerberos fails "
                "at 300 s."
            ),
        )
    return ok(
        _("This clock and the ResourceManager's differ by less than {skew:.0f} s.").format(
            skew=abs(skew) + 1
        )
    )


def queues(context: DoctorContext) -> Finding:
    """Check that the scheduler has queues, and the queue of the profile."""
    found = queues_of(context.rm_response("/scheduler"))
    leaves = [queue.name for queue in found if queue.leaf and queue.running]
    listed = ", ".join(leaves[:20]) + (" …" if len(leaves) > 20 else "")
    name = context.profile.queue
    if not leaves:
        return error(_("The scheduler has no running queue."), _("Ask the operator."))
    if name and (queue := find_queue(found, name)) is None:
        return error(
            _("There is no queue {name}; there are {listed}.").format(name=name, listed=listed),
            _("Correct the setting queue."),
        )
    if name and not (queue and queue.leaf and queue.running):
        return error(
            _("The queue {name} accepts no jobs now.").format(name=name),
            _("Choose one of {listed}.").format(listed=listed),
        )
    return ok(_("Queues that accept jobs: {listed}.").format(listed=listed))


def ports(context: DoctorContext) -> Finding:
    """Check that each address that a submission needs accepts a connection."""
    conf = context.conf
    addresses: list[tuple[str, str]] = [
        *((_("ResourceManager web"), urlsplit(url).netloc) for url in conf.resourcemanagers),
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
            _("Nothing of the cluster can be reached: {closed}.").format(closed="; ".join(closed)),
            _(
                "Check network, VPN and firewall, and that HADOOP_CONF_DIR or hadoop_conf_dir "
                "({directory}) is the configuration of this cluster."
            ).format(directory=conf.directory),
        )
    if closed:
        return warning(
            _("Cannot be reached: {closed}.").format(closed="; ".join(closed)),
            _("With high availability one of a pair may be down; else check the firewall."),
        )
    return ok(_("All {count} addresses accept connections.").format(count=len(addresses)))


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
            _("{url} did not give back what was written.").format(url=storage.url(path)),
            _("Ask the operator."),
        )
    seconds = time.monotonic() - started
    if seconds > 5:
        return warning(
            _("Writing, reading and removing a small file in {url} took {seconds:.1f} s.").format(
                url=storage.url(root), seconds=seconds
            ),
            _("The NameNode is slow or far away; submits will be too."),
        )
    return ok(
        _("{url} can be written and read ({seconds:.0f} ms).").format(
            url=storage.url(root), seconds=seconds * 1000
        )
    )


def webhdfs(context: DoctorContext) -> Finding:
    """Check WebHDFS or the gateway, through which containers access the job directory."""
    conf = context.conf
    if not conf.gateway and conf.get("dfs.webhdfs.enabled", "true").lower() == "false":
        return error(
            _("WebHDFS is switched off (dfs.webhdfs.enabled), and containers need it."),
            _(
                "Operators: set dfs.webhdfs.enabled to true on NameNodes and DataNodes, or name an "
                "HttpFS gateway (setting httpfs)."
            ),
        )
    trouble = ""
    for url in conf.webhdfs:
        try:
            answer = _get(
                url, "/webhdfs/v1/", context.yarn.identity.file_system_access, op="GETFILESTATUS"
            ).json()
            if isinstance(answer, dict) and "FileStatus" in answer:
                return ok(_("{url} answers.").format(url=url))
            trouble = _("{url} answers without a file status").format(url=url)
        except (ClusterError, ValueError) as exc:
            trouble = str(exc) or _("{url} answers with something else than JSON").format(url=url)
    return error(
        _("WebHDFS does not work: {trouble}").format(
            trouble=trouble or _("no address is configured")
        ),
        _("Check the setting httpfs, and that no proxy intercepts the requests.")
        if conf.gateway
        else _("Check dfs.namenode.http-address, and that no proxy intercepts the requests."),
    )


def _get(base: str, path: str, access: Access, **query: str) -> Answer:
    """Return the response to a small GET request."""
    try:
        return HttpClient([base], access=access, timeout=_TIMEOUT).request("GET", path, query)
    except NoAnswerError as exc:
        raise ClusterError(
            _("{base} does not answer: {error}.").format(base=base, error=exc),
            _("Check that it is up."),
        ) from exc


def _dial(address: str) -> str:
    """Return why ``host:port`` cannot be reached; empty if it can."""
    host, _colon, port = address.rpartition(":")
    if not host or not port.isdigit():
        return _("is no host:port")
    try:
        with socket.create_connection((host, int(port)), timeout=3):
            return ""
    except OSError as exc:
        return exc.strerror or str(exc) or type(exc).__name__
