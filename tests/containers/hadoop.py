"""A Hadoop cluster in a cell: LinuxContainerExecutor, Docker, isolated GPUs, nodes in racks.

It runs in the cell, as root: `python -m tests.containers.hadoop start|add|stop GROUP [NODE]...`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from submarine_minicluster.hadoop import ensure_jars, write_client_commands
from submarine_minicluster.layout import Layout
from submarine_minicluster.machine import find_java
from submarine_minicluster.settings import Settings
from tests.containers import nvidia_smi
from tests.containers.cell import REPOSITORY, docker_dir
from tests.containers.first_process import ADDRESS, DEVICES, HADOOP_GROUP, NODES, USERS

LAYOUT = Layout(Path("/srv/cluster"))
"""Files of the cluster; only clients' configuration, logs and commands are as in a minicluster."""
IMAGE = "local/python:1"
WITHOUT_PYTHON, WITHOUT_BASH = "local/no-python:1", "local/no-bash:1"
FOREIGN = "elsewhere/python:1"
"""An image of a registry that is not trusted."""
NETWORKS = ("host", "none", "bridge", "gang")
RACKS = {"node0": "/rack-a", "node1": "/rack-b", "node2": "/rack-b", "node3": "/rack-c"}
NODE_MB, NODE_VCORES = 8192, 8

_BIN, _CONF, _NM = Path("/srv/bin"), Path("/srv/conf"), Path("/srv/nm")
_SOCKET = "unix:///run/docker.sock"
_JVM = (
    "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto",
    "--add-opens", "java.base/java.lang=ALL-UNNAMED",
)  # fmt: skip
_SERVER = "org.apache.hadoop.yarn.server"
_DAEMONS = {
    # name: main class, heap in MB, user of Hadoop
    "namenode": ("org.apache.hadoop.hdfs.server.namenode.NameNode", 192, "hdfs"),
    "datanode": ("org.apache.hadoop.hdfs.server.datanode.DataNode", 160, "hdfs"),
    "resourcemanager": (f"{_SERVER}.resourcemanager.ResourceManager", 256, "yarn"),
    "nodemanager": (f"{_SERVER}.nodemanager.NodeManager", 192, "yarn"),
    "historyserver": ("org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer", 128, "mapred"),
}
_LOG4J = """\
log4j.rootLogger=INFO,FILE
log4j.appender.FILE=org.apache.log4j.FileAppender
log4j.appender.FILE.File=${submarine.log}
log4j.appender.FILE.layout=org.apache.log4j.PatternLayout
log4j.appender.FILE.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""
_LOG4J_CLIENT = """\
log4j.rootLogger=ERROR,STDERR
log4j.appender.STDERR=org.apache.log4j.ConsoleAppender
log4j.appender.STDERR.target=System.err
log4j.appender.STDERR.layout=org.apache.log4j.PatternLayout
"""
_CAPABILITIES = (
    "CHOWN,DAC_OVERRIDE,FSETID,FOWNER,MKNOD,NET_RAW,SETGID,SETUID,SETFCAP,SETPCAP,"
    "NET_BIND_SERVICE,SYS_CHROOT,KILL,AUDIT_WRITE"
)
_PREFIX = "yarn.nodemanager"
_EXECUTOR = f"{_PREFIX}.linux-container-executor"

Properties = dict[str, str]


# Configuration


def _core() -> Properties:
    return {
        "fs.defaultFS": "hdfs://node0:9000",
        "hadoop.user.group.static.mapping.overrides": (
            "hdfs=supergroup,hadoop;yarn=hadoop;mapred=hadoop;dr.who="
        ),
        # Application masters need it too: they name the racks of the nodes that they request.
        "net.topology.script.file.name": str(_BIN / "racks"),
        "ipc.client.connect.max.retries": "100",
        "ipc.client.connect.retry.interval": "200",
    }


def _hdfs() -> Properties:
    return {
        "dfs.replication": "1",
        "dfs.permissions.superusergroup": "supergroup",
        "dfs.namenode.rpc-address": "node0:9000",
        "dfs.namenode.http-address": "node0:9870",
        "dfs.namenode.name.dir": f"file://{LAYOUT.data('namenode')}",
        "dfs.namenode.safemode.extension": "0",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.datanode.data.dir": f"file://{LAYOUT.data('datanode')}",
        "dfs.datanode.hostname": "node0",
        "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
        "dfs.client.block.write.replace-datanode-on-failure.enable": "false",
    }


def _yarn(lib: Path) -> Properties:
    return {
        "yarn.resourcemanager.hostname": "node0",
        "yarn.application.classpath": f"{lib}/*,{LAYOUT.client_conf}",
        "yarn.log-aggregation-enable": "true",
        "yarn.nodemanager.remote-app-log-dir": "/tmp/logs",
        "yarn.log.server.url": "http://node0:19888/jobhistory/logs",
        "yarn.log.server.web-service.url": "http://node0:19888/ws/v1/history",
        "yarn.scheduler.minimum-allocation-mb": "64",
        "yarn.scheduler.maximum-allocation-mb": str(NODE_MB),
        "yarn.client.app-submission.poll-interval": "20",
        "yarn.resourcemanager.connect.retry-interval.ms": "500",
    }


def _mapred() -> Properties:
    return {
        "mapreduce.jobhistory.address": "node0:10020",
        "mapreduce.jobhistory.webapp.address": "node0:19888",
        "mapreduce.jobhistory.done-dir": "/mr-history/done",
        "mapreduce.jobhistory.intermediate-done-dir": "/mr-history/intermediate",
    }


def _resourcemanager() -> Properties:
    return {
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "100",
        "yarn.cluster.max-application-priority": "10",
        "yarn.nm.liveness-monitor.expiry-interval-ms": "15000",
    }


def _capacity() -> Properties:
    prefix = "yarn.scheduler.capacity"
    values = {
        f"{prefix}.resource-calculator": (
            "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
        ),
        f"{prefix}.root.queues": "default,gpu",
        # The default of YARN, stated because the placement by racks depends on it.
        f"{prefix}.node-locality-delay": "40",
    }
    for queue in ("default", "gpu"):
        values |= {
            f"{prefix}.root.{queue}.capacity": "50",
            f"{prefix}.root.{queue}.maximum-capacity": "100",
            f"{prefix}.root.{queue}.user-limit-factor": "100",
            f"{prefix}.root.{queue}.maximum-am-resource-percent": "1.0",
            f"{prefix}.root.{queue}.state": "RUNNING",
        }
    return values


def _nodemanager(node: str, group: str) -> Properties:
    """Return the properties of a node: only the first has Docker, GPUs and control groups."""
    folder = _NM / node
    values = {
        f"{_PREFIX}.hostname": node,
        f"{_PREFIX}.address": f"{node}:8041",
        f"{_PREFIX}.webapp.address": f"{node}:8042",
        f"{_PREFIX}.local-dirs": str(folder / "local"),
        f"{_PREFIX}.log-dirs": str(folder / "logs"),
        f"{_PREFIX}.resource.memory-mb": str(NODE_MB),
        f"{_PREFIX}.resource.cpu-vcores": str(NODE_VCORES),
        f"{_PREFIX}.vmem-check-enabled": "false",
        f"{_PREFIX}.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
        f"{_PREFIX}.disk-health-checker.min-free-space-per-disk-mb": "0",
        f"{_PREFIX}.env-whitelist": "JAVA_HOME,HADOOP_CONF_DIR,PATH,LANG,TZ",
        f"{_PREFIX}.container-executor.class": (
            f"{_SERVER}.nodemanager.LinuxContainerExecutor"
        ),
        f"{_EXECUTOR}.group": "hadoop",
        f"{_EXECUTOR}.path": str(_BIN / "container-executor"),
        f"{_EXECUTOR}.nonsecure-mode.limit-users": "false",
        # Each localization starts a JVM.
        f"{_PREFIX}.container-localizer.java.opts": (
            "-Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
        ),
        f"{_PREFIX}.runtime.linux.allowed-runtimes": "default",
    }  # fmt: skip
    if node != "node0":
        return values
    docker = f"{_PREFIX}.runtime.linux.docker"
    return {
        **values,
        f"{_PREFIX}.resource.memory.enabled": "true",
        f"{_PREFIX}.resource.cpu.enabled": "true",
        f"{_EXECUTOR}.cgroups.hierarchy": f"/{group}",
        f"{_EXECUTOR}.cgroups.mount": "false",
        f"{_EXECUTOR}.cgroups.mount-path": "/sys/fs/cgroup",
        f"{_PREFIX}.runtime.linux.allowed-runtimes": "default,docker",
        f"{docker}.allowed-container-networks": ",".join(NETWORKS),
        f"{docker}.default-container-network": "host",
        f"{docker}.capabilities": _CAPABILITIES,
        f"{_PREFIX}.resource-plugins": "yarn.io/gpu",
        f"{_PREFIX}.resource-plugins.gpu.path-to-discovery-executables": str(_BIN / "nvidia-smi"),
        f"{_PREFIX}.resource-plugins.gpu.docker-plugin": "nvidia-docker-v2",
    }


def _executor_cfg(group: str) -> str:
    """Return container-executor.cfg, in the real program's format."""
    major = next(iter(DEVICES.values()))[0]
    readable = ",".join(map(str, (REPOSITORY, sys.base_prefix, "/usr/lib/jvm", "/etc", "/srv")))
    lines = [
        f"{_EXECUTOR}.group=hadoop", "banned.users=root,bin", "min.user.id=1000",
        "[docker]", "module.enabled=true", f"docker.binary={_BIN / 'docker'}",
        f"docker.allowed.capabilities={_CAPABILITIES}",
        f"docker.allowed.networks={','.join(NETWORKS)}",
        f"docker.allowed.ro-mounts={_NM},{readable}", f"docker.allowed.rw-mounts={_NM},/dev/shm",
        "docker.trusted.registries=local", "docker.allowed.runtimes=nvidia",
        "[gpu]", "module.enabled=true", f"gpu.major-device-number={major}",
        "[cgroups]", "root=/sys/fs/cgroup", f"yarn-hierarchy={group}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _write_xml(path: Path, properties: Properties) -> None:
    root = ElementTree.Element("configuration")
    for name, value in properties.items():
        entry = ElementTree.SubElement(root, "property")
        ElementTree.SubElement(entry, "name").text = name
        ElementTree.SubElement(entry, "value").text = value
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(root).write(path)


def _write_set(folder: Path, sites: Mapping[str, Properties], log4j: str = _LOG4J) -> None:
    for name, properties in sites.items():
        _write_xml(folder / f"{name}.xml", properties)
    (folder / "log4j.properties").write_text(log4j)


def _script(name: str, text: str) -> None:
    (_BIN / name).write_text(f"#!/bin/sh\n{text}\n")
    (_BIN / name).chmod(0o755)


class Hadoop:
    """Writes the configuration of the cluster and starts its daemons.

    Parameters
    ----------
    group
        Name of the cell's control group.
    """

    def __init__(self, group: str) -> None:
        self._group = group
        self._java = find_java()
        self._lib = ensure_jars(Settings().hadoop, self._java, lambda _: None)
        self._common = {
            "core-site": _core(),
            "hdfs-site": _hdfs(),
            "mapred-site": _mapred(),
            "resource-types": {"yarn.resource-types": "yarn.io/gpu"},
        }

    def start(self) -> None:
        """Start Docker and the cluster of one node."""
        self._install()
        docker = self._start_docker()
        self._configure()
        self._format()
        for name in ("namenode", "datanode", "resourcemanager"):
            self._start(name)
        self._start_node("node0")
        self._start("historyserver")
        _import_images()
        if docker.poll() is not None:
            raise RuntimeError(f"dockerd ended: {LAYOUT.output('dockerd').read_text()[-2000:]}")
        _wait("HDFS", _hdfs_ready)
        _make_homes()
        await_nodes(["node0"])

    def add_node(self, node: str) -> None:
        """Start a NodeManager in a network namespace of its own; do not wait for it."""
        namespace, temporary = f"net-{node}", Path(f"/run/tmp-{node}")
        if not temporary.exists():
            _connect(node, namespace)
            temporary.mkdir()
            temporary.chmod(0o1777)
        prepare = f'hostname {node}; mount --bind {temporary} /tmp; exec "$@"'
        enter = ["nsenter", f"--net=/run/netns/{namespace}", "unshare", "--uts", "--mount"]
        self._start_node(node, [*enter, "sh", "-c", prepare, "sh"])

    def _install(self) -> None:
        """Install the stand-ins, and the programs that the NodeManager calls."""
        LAYOUT.make()
        for folder in (LAYOUT.root, LAYOUT.log("").parent, LAYOUT.root / "conf", _BIN, _CONF, _NM):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o755)
        for folder in (LAYOUT.tmp, LAYOUT.log("").parent):
            folder.chmod(0o1777)
        python, here = _BIN / "python-of-root", Path(__file__).parent
        shutil.copyfile(Path(sys.executable).resolve(), python)
        os.chown(python, 0, HADOOP_GROUP)
        python.chmod(0o4750)
        for name in ("container_executor.py", "nvidia_runtime.py"):
            shutil.copyfile(here / name, _BIN / name)
            (_BIN / name).chmod(0o755)
        _script("container-executor", f'exec {python} -I {_BIN}/container_executor.py "$@"')
        _script("nvidia-runtime", f'exec {sys.executable} -I {_BIN}/nvidia_runtime.py "$@"')
        (_BIN / "gpus.xml").write_text(nvidia_smi.report())
        _script("nvidia-smi", f"cat {_BIN}/gpus.xml")
        engine = docker_dir() / "engine/usr"
        (_BIN / "runc").symlink_to(engine / "sbin/runc")
        _script("docker", f'exec {engine}/bin/docker -H {_SOCKET} "$@"')
        _script("racks", 'for a; do case $a in\n' + "".join(
            f"{node}|{NODES.get(node, ADDRESS)}) echo {rack};;\n" for node, rack in RACKS.items()
        ) + "*) echo /default-rack;;\nesac; done")  # fmt: skip
        cfg = _CONF / "container-executor.cfg"
        cfg.write_text(_executor_cfg(self._group))
        cfg.chmod(0o400)

    def _configure(self) -> None:
        yarn = _yarn(self._lib)
        _write_set(LAYOUT.client_conf, {**self._common, "yarn-site": yarn}, _LOG4J_CLIENT)
        write_client_commands(LAYOUT, self._java, self._lib, kerberos=False)
        for name in ("namenode", "datanode", "historyserver"):
            _write_set(LAYOUT.conf(name), {**self._common, "yarn-site": yarn})
        for pages in ("namenode/webapps/hdfs", "datanode/webapps/datanode"):
            (LAYOUT.root / "conf" / pages).mkdir(parents=True)
        own = {"yarn-site": {**yarn, **_resourcemanager()}, "capacity-scheduler": _capacity()}
        _write_set(LAYOUT.conf("resourcemanager"), {**self._common, **own})

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self._java.home}/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
            "JAVA_HOME": str(self._java.home),
            "HADOOP_CONF_DIR": str(LAYOUT.client_conf),
            "HOME": "/home/yarn",
            "LANG": "C.UTF-8",
        }

    def _command(self, name: str, kind: str, *arguments: str) -> list[str]:
        main, heap, user = _DAEMONS[kind]
        return [
            str(self._java.binary), *_JVM, f"-Xmx{heap}m", f"-Djava.io.tmpdir={LAYOUT.tmp}",
            f"-DHADOOP_USER_NAME={user}", f"-Dsubmarine.log={LAYOUT.log(name)}",
            "-cp", f"{self._lib}/*:{LAYOUT.conf(name)}", main, *arguments,
        ]  # fmt: skip

    def _format(self) -> None:
        words = self._command("namenode", "namenode", "-format", "-force", "-nonInteractive")
        with LAYOUT.output("format").open("wb") as output:
            subprocess.run(
                words, env=self._environment(), check=True, stdout=output, stderr=output,
                timeout=60,
            )  # fmt: skip

    def _start(self, name: str, kind: str = "", prefix: Iterable[str] = ()) -> None:
        with LAYOUT.output(name).open("wb") as output:
            process = subprocess.Popen(
                [*prefix, *self._command(name, kind or name)], env=self._environment(),
                cwd=LAYOUT.tmp, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip
        LAYOUT.pidfile(name).write_text(str(process.pid))

    def _start_node(self, node: str, prefix: Iterable[str] = ()) -> None:
        site = {**_yarn(self._lib), **_nodemanager(node, self._group)}
        _write_set(LAYOUT.conf(node), {**self._common, "yarn-site": site})
        for folder in (_NM / node, *(_NM / node / one for one in ("local", "logs"))):
            folder.mkdir(exist_ok=True)
            os.chown(folder, USERS["yarn"], HADOOP_GROUP)
            folder.chmod(0o755)
        become = ["setpriv", "--reuid", "yarn", "--regid", "hadoop", "--init-groups"]
        self._start(node, "nodemanager", [*prefix, *become])

    def _start_docker(self) -> subprocess.Popen[bytes]:
        engine = docker_dir() / "engine/usr"
        words = [
            "setpriv", "--regid", "0", "--clear-groups", str(engine / "sbin/dockerd"),
            "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false",
            "--bip=10.78.0.1/24", "-H", _SOCKET, "--data-root", "/srv/docker",
            "--exec-root", "/run/docker", "--pidfile", "/run/docker.pid",
            "--storage-driver", "overlay2", "--exec-opt", "native.cgroupdriver=cgroupfs",
            "--cgroup-parent", f"/{self._group}/docker", "--default-ulimit", "nofile=1024:4096",
            "--add-runtime", f"nvidia={_BIN / 'nvidia-runtime'}",
        ]  # fmt: skip
        path = f"{engine}/bin:{engine}/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
        with LAYOUT.output("dockerd").open("wb") as output:
            return subprocess.Popen(
                words, env={"PATH": path}, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip


def _connect(node: str, namespace: str) -> None:
    """Make the network namespace of a node, with a cable to the bridge."""
    cable = f"to-{node}"
    for words in (
        f"ip netns add {namespace}",
        f"ip link add {cable} type veth peer name eth0 netns {namespace}",
        f"ip link set {cable} master br0 up",
        f"ip -n {namespace} address add {NODES[node]}/24 dev eth0",
        f"ip -n {namespace} link set eth0 up",
        f"ip -n {namespace} link set lo up",
    ):
        subprocess.run(words.split(), check=True, timeout=30)


def docker(*words: str) -> str:
    """Call Docker's client, and return its output."""
    done = subprocess.run(
        [str(_BIN / "docker"), *words], capture_output=True, text=True, check=False, timeout=60
    )
    if done.returncode:
        raise RuntimeError(f"docker {words[0]}: {done.stderr}")
    return done.stdout


def _import_images() -> None:
    """Make the images, and a network of Docker's own."""
    _wait("Docker", lambda: bool(docker("version")))
    without = {IMAGE: (), WITHOUT_PYTHON: ("./usr/bin/python3*",), WITHOUT_BASH: ("./bin/bash",)}
    for image, excluded in without.items():
        options = [f"--exclude={pattern}" for pattern in excluded]
        with subprocess.Popen(
            ["tar", "-C", str(docker_dir() / "image"), *options, "-c", "."], stdout=subprocess.PIPE
        ) as files:
            subprocess.run(
                [str(_BIN / "docker"), "import", "-", image], check=True, stdin=files.stdout,
                stdout=subprocess.DEVNULL, timeout=120,
            )  # fmt: skip
    docker("tag", IMAGE, FOREIGN)
    docker("network", "create", "--subnet", "10.79.0.0/24", "gang")


def get_json(url: str) -> Any:
    """Return what a REST interface answers."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def _wait(what: str, ready: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            if ready():
                return
            reason = "not ready"
        except (OSError, RuntimeError, LookupError, ValueError) as exc:
            reason = str(exc)
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not start: {reason}\n{_errors()}")
        time.sleep(0.2)


def _errors() -> str:
    """Return the last errors in the logs of the daemons."""
    lines = [
        f"{path.name}: {line}"
        for path in sorted(LAYOUT.log("").parent.iterdir())
        for line in path.read_text(errors="replace").splitlines()
        if path.suffix == ".out" or " ERROR " in line or " FATAL " in line or "Caused by" in line
    ]
    return "\n".join(lines[-40:])


def _hdfs_ready() -> bool:
    query = "http://node0:9870/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
    return bool(get_json(query)["beans"][0]["NumLiveDataNodes"])


def running_nodes() -> list[str]:
    """Return the names of the nodes that run containers."""
    answer = get_json("http://node0:8088/ws/v1/cluster/nodes?states=RUNNING")
    return [node["nodeHostName"] for node in (answer["nodes"] or {}).get("node", ())]


def await_nodes(names: Iterable[str]) -> None:
    """Wait until exactly these nodes run."""
    wanted = set(names)
    _wait(f"YARN on {sorted(wanted)}", lambda: set(running_nodes()) == wanted)


def _make_homes() -> None:
    """Create the directories of HDFS, as its superuser."""

    def put(path: str, operation: str, **values: str) -> None:
        query = "&".join(f"{name}={value}" for name, value in values.items())
        url = f"http://node0:9870/webhdfs/v1{path}?user.name=hdfs&op={operation}&{query}"
        urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=20).close()

    folders = {
        "/tmp": ("hdfs", "1777"), "/tmp/logs": ("yarn", "1777"), "/mr-history": ("mapred", "755"),
        "/user": ("hdfs", "755"), "/user/alice": ("alice", "700"), "/user/bob": ("bob", "700"),
    }  # fmt: skip
    for path, (owner, mode) in folders.items():
        group = "hadoop" if owner in ("yarn", "mapred") else owner
        put(path, "MKDIRS")
        put(path, "SETOWNER", owner=owner, group=group)
        put(path, "SETPERMISSION", permission=mode)


def main(verb: str, group: str, *nodes: str) -> None:
    """Start the cluster, add nodes to it, or stop nodes."""
    hadoop = Hadoop(group)
    if verb == "start":
        hadoop.start()
    elif verb == "add":
        for node in nodes:
            hadoop.add_node(node)
        await_nodes({"node0", *nodes})
    else:
        for node in nodes:
            os.kill(int(LAYOUT.pidfile(node).read_text()), signal.SIGTERM)
        await_nodes({"node0"})


if __name__ == "__main__":
    main(*sys.argv[1:])
