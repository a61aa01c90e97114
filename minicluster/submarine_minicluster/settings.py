"""Settings of a minicluster, and the file in which they are kept with its ports."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from submarine_minicluster.errors import MiniclusterError
from submarine_runtime.files import replace_file
from submarine_runtime.translation import _, ngettext

#: The releases of Hadoop that start on a JDK of 17 or newer; the last of each line, and 3.5.0.
HADOOP_VERSIONS = ("3.1.4", "3.2.4", "3.3.6", "3.4.2", "3.5.0")
DEFAULT_HADOOP = HADOOP_VERSIONS[-1]
#: The releases of HDFS that start under an older YARN, on Java 8.
HDFS_VERSIONS = ("2.10.2",)
DAY = 24 * 3600
_LIFETIMES = ("ticket_lifetime", "ticket_renewable", "token_renew_interval", "token_max_lifetime")
PROTECTIONS = ("authentication", "integrity", "privacy")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,40}\Z")
_LABEL = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]{0,40})=(\d{1,3})\Z")
_PROPERTY = re.compile(r"([A-Za-z0-9][A-Za-z0-9_./-]*)=(.*)\Z")
#: Files of Hadoop's properties by the first part of their names; others are in ``core-site.xml``.
_SITES = {"dfs": "hdfs-site", "mapreduce": "mapred-site", "yarn": "yarn-site"}
_MEMORY = re.compile(r"(\d+)\s*(?:([mg])i?b?)?\Z", re.IGNORECASE)


def parse_memory(text: str) -> int:
    """Convert ``8G``, ``8192M`` or a plain number of megabytes to megabytes.

    Raises
    ------
    MiniclusterError
        If the text has another form.
    """
    found = _MEMORY.match(text.strip())
    if not found:
        raise MiniclusterError(
            _("Memory {text!r} is not a size. Write 8G or 8192M.").format(text=text)
        )
    scale = 1024 if (found.group(2) or "m").lower() == "g" else 1
    return int(found.group(1)) * scale


def check_name(name: str) -> str:
    """Return `name` if it is valid as a cluster's name, which is also its directory's name.

    Raises
    ------
    MiniclusterError
        If it is not valid.
    """
    if not _NAME.match(name):
        raise MiniclusterError(
            _(
                "{name!r} is not a valid name of a minicluster. Use up to 41 letters, digits, "
                "'_', '.' or '-', and begin with a letter or digit."
            ).format(name=name)
        )
    return name


@dataclass(frozen=True)
class Settings:
    """Size and version of a cluster.

    Attributes
    ----------
    hadoop
        Hadoop's version, one of `HADOOP_VERSIONS`.
    hdfs
        Release of NameNode and DataNode, one of `HDFS_VERSIONS`; empty: that of `hadoop`.
    java
        Java home of the daemons and their containers; empty: the Java of the clients.
    nodes
        Number of NodeManagers. There is always one DataNode.
    memory_mb, vcores, gpus
        Resources that each NodeManager offers. YARN's scheduler counts them and reserves nothing;
        the machine need not have GPUs.
    preemption
        Whether the scheduler preempts containers for a queue that is below its share.
    labels
        Node labels as ``NAME=INDEX``: NodeManager ``INDEX`` is in the partition ``NAME``.
    node_expiry
        Seconds without a heartbeat after which a node is lost.
    kerberos
        Whether clients and daemons prove their names by Kerberos.
    https
        Whether web interfaces use TLS only; requires Kerberos.
    ticket_lifetime, ticket_renewable
        Seconds until a Kerberos ticket expires, and until it cannot be renewed any more.
    token_renew_interval, token_max_lifetime
        Seconds until a delegation token of HDFS or YARN must be renewed, and until it expires.
    proxy_user_privileges
        Whether the ResourceManager gets new HDFS tokens for an application whose own ones expire.
    protection
        Quality of protection of RPC and of the transfer of blocks: one of `PROTECTIONS`.
    encryption_zones
        Whether the NameNode has a key provider, a file, so that directories can be encrypted.
    ha
        Whether there are two NameNodes and two ResourceManagers, of which one each is active.
    properties
        Properties of Hadoop as ``NAME=VALUE``, for clients and daemons; they replace any other
        value.
    """

    hadoop: str = DEFAULT_HADOOP
    hdfs: str = ""
    java: str = ""
    nodes: int = 1
    memory_mb: int = 8192
    vcores: int = 8
    gpus: int = 4
    preemption: bool = False
    labels: tuple[str, ...] = ()
    node_expiry: int = 30
    kerberos: bool = False
    https: bool = False
    ticket_lifetime: int = DAY
    ticket_renewable: int = 7 * DAY
    token_renew_interval: int = DAY
    token_max_lifetime: int = 7 * DAY
    proxy_user_privileges: bool = False
    protection: str = "authentication"
    encryption_zones: bool = False
    ha: bool = False
    properties: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.hadoop not in HADOOP_VERSIONS:
            raise MiniclusterError(
                _("The minicluster has no Hadoop {hadoop!r}. Use one of {known}.").format(
                    hadoop=self.hadoop[:40], known=", ".join(HADOOP_VERSIONS)
                )
            )
        if self.hdfs not in ("", *HDFS_VERSIONS):
            raise MiniclusterError(
                _("The minicluster has no HDFS {hdfs!r}. Use one of {known}.").format(
                    hdfs=self.hdfs[:40], known=", ".join(HDFS_VERSIONS)
                )
            )
        if (self.hdfs or self.java) and (self.kerberos or self.ha or self.encryption_zones):
            raise MiniclusterError(
                _(
                    "Another release of HDFS and another Java require a minicluster without "
                    "Kerberos, high availability and encryption zones."
                )
            )
        object.__setattr__(self, "labels", tuple(self.labels))  # JSON has a list
        for label in self.labels:
            found = _LABEL.match(label)
            if not found or int(found.group(2)) >= self.nodes:
                raise MiniclusterError(
                    _(
                        "{label!r} is not a label. Write NAME=INDEX with an index below {nodes}."
                    ).format(label=label, nodes=self.nodes)
                )
        object.__setattr__(self, "properties", tuple(self.properties))
        for text in self.properties:
            if not _PROPERTY.match(text):
                raise MiniclusterError(
                    _("{text!r} is not a property of Hadoop. Write NAME=VALUE.").format(text=text)
                )
        only_with_kerberos = ("https", "proxy_user_privileges", "protection", *_LIFETIMES)
        defaults = {one.name: one.default for one in fields(self)}
        if not self.kerberos and any(
            getattr(self, name) != defaults[name] for name in only_with_kerberos
        ):
            raise MiniclusterError(
                _(
                    "HTTPS, ticket and token lifetimes, proxy user privileges and protection "
                    "require Kerberos (--kerberos)."
                )
            )
        if self.protection not in PROTECTIONS:
            raise MiniclusterError(
                _("The protection {protection!r} is not one of {known}.").format(
                    protection=self.protection, known=", ".join(PROTECTIONS)
                )
            )
        limits = {"nodes": (1, 16), "memory_mb": (512, 1 << 22), "vcores": (1, 4096)}
        limits |= dict.fromkeys(_LIFETIMES, (10, 365 * DAY))
        for name, (low, high) in {**limits, "gpus": (0, 1024), "node_expiry": (2, 600)}.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise MiniclusterError(
                    _("{name} is {value}. It must be between {low} and {high}.").format(
                        name=name, value=value, low=low, high=high
                    )
                )

    @property
    def host(self) -> str:
        """Host name in all addresses.

        Kerberos principals and certificates name the host. A NodeManager registers under the name
        of its address, which is ``localhost``.
        """
        return "localhost" if self.kerberos else "127.0.0.1"

    @property
    def releases(self) -> str:
        """Releases whose data a cluster keeps: ``3.5.0``, or ``3.1.4 with HDFS 2.10.2``."""
        return self.hadoop + (f" with HDFS {self.hdfs}" if self.hdfs else "")

    @property
    def scheme(self) -> str:
        """Scheme of web addresses."""
        return "https" if self.https else "http"

    @property
    def node_labels(self) -> list[tuple[str, int]]:
        """Each label with the index of its NodeManager."""
        return [(name, int(index)) for name, _, index in (x.partition("=") for x in self.labels)]

    @property
    def site_properties(self) -> dict[str, dict[str, str]]:
        """The chosen properties by file, without its suffix."""
        sites: dict[str, dict[str, str]] = {}
        for name, _sign, value in (text.partition("=") for text in self.properties):
            site = _SITES.get(name.partition(".")[0], "core-site")
            sites.setdefault(site, {})[name] = value
        return sites

    def describe(self) -> str:
        """Describe the settings: ``Hadoop 3.5.0, 1 node of 8192 MB, 8 vcores, 4 GPUs``."""
        nodes = ngettext("{nodes} node", "{nodes} nodes", self.nodes).format(nodes=self.nodes)
        more = f", Java {self.java}" if self.java else ""
        more += ", Kerberos" * self.kerberos + ", HTTPS" * self.https
        if self.protection != PROTECTIONS[0]:
            more += _(", protection {protection}").format(protection=self.protection)
        more += _(", encryption zones") if self.encryption_zones else ""
        more += _(", high availability") if self.ha else ""
        more += ", preemption" * self.preemption
        more += _(", labels {labels}").format(labels=" ".join(self.labels)) if self.labels else ""
        more += f", {' '.join(self.properties)}" if self.properties else ""
        return _(
            "Hadoop {hadoop}, {nodes} of {memory_mb} MB, {vcores} vcores, {gpus} GPUs{more}"
        ).format(
            hadoop=self.releases,
            nodes=nodes,
            memory_mb=self.memory_mb,
            vcores=self.vcores,
            gpus=self.gpus,
            more=more,
        )


@dataclass
class SavedCluster:
    """Settings and ports of a cluster, as kept in its directory.

    Attributes
    ----------
    settings
        Settings of the last start.
    java_home
        Java home of the daemons.
    ports
        Loopback ports by name. They are kept from start to start because the addresses of files in
        HDFS contain one.
    users
        Hadoop users that the daemons serve in addition to the service users.
    """

    settings: Settings
    java_home: str
    ports: dict[str, int] = field(default_factory=dict)
    users: tuple[str, ...] = ()

    def write(self, path: Path) -> None:
        """Replace the file at `path` atomically."""
        replace_file(path, (json.dumps(asdict(self), indent=2) + "\n").encode())

    @classmethod
    def read(cls, path: Path) -> SavedCluster | None:
        """Read the file at `path`; return None if it does not exist.

        Raises
        ------
        MiniclusterError
            If the file is malformed.
        """
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            users = tuple(raw.get("users", ()))
            return cls(Settings(**raw["settings"]), raw["java_home"], raw["ports"], users)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise MiniclusterError(
                _(
                    "{path} does not describe a minicluster ({error}). Run `submarine "
                    "minicluster stop`, then remove {parent}."
                ).format(path=path, error=error, parent=path.parent)
            ) from error
