"""Read Hadoop's client configuration from XML: addresses, names, a fingerprint.

Properties have Hadoop's defaults for the keys that this backend needs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from xml.etree import ElementTree

from submarine_jobs.errors import NAME_CLUSTER, ConfigError
from submarine_jobs.model import primary_of
from submarine_jobs.storage import DEFAULT_PORTS
from submarine_runtime.protocol import LogServer
from submarine_runtime.translation import _
from submarine_runtime.yarn import GPU_RESOURCES

#: In the order in which Hadoop reads them; values of later files override earlier ones.
FILES = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml", "resource-types.xml")
#: Scheme -> keys of its addresses, without the prefix ``dfs.namenode.``.
_ADDRESS_KEYS = {
    "hdfs": ("rpc-address", "servicerpc-address"),
    "webhdfs": ("http-address",),
    "swebhdfs": ("https-address",),
}
#: Hadoop's defaults: maximum lifetime of tokens in seconds, and renewal interval.
_TOKEN_LIFETIME = 7 * 24 * 3600.0
_RENEW_MILLISECONDS = 24 * 3600 * 1000
#: Directory of the users' homes, whose HDFS has the job directories where viewfs is the default.
_HOMES = "/user"
_VARIABLE = re.compile(r"\$\{([^}${]+)\}")
_MAX_SUBSTITUTIONS = 20
_MAX_FILE = 8 << 20


class HadoopConf:
    """The merged client configuration of one directory.

    Parameters
    ----------
    directory
        Contains core-site.xml and the other files.
    gateway
        Base URL of an HttpFS gateway, which is used in place of WebHDFS; empty: none.

    Raises
    ------
    ConfigError
        If the directory or core-site.xml is missing, or a file is no Hadoop configuration.
    """

    def __init__(self, directory: Path, gateway: str = "") -> None:
        self.directory = directory
        self.gateway = gateway
        if not (directory / "core-site.xml").is_file():
            raise ConfigError(
                _("{directory} holds no core-site.xml.").format(directory=directory),
                f"{_(NAME_CLUSTER)}.",
            )
        self._values: dict[str, str] = {}
        for name in FILES:
            self._values.update(read_properties(directory / name))

    def get(self, key: str, default: str = "") -> str:
        """Return the value of ``key``, with ``${...}`` replaced by other values."""
        value = self._values.get(key, default)
        for _number in range(_MAX_SUBSTITUTIONS):
            match = _VARIABLE.search(value)
            if match is None or match.group(1) not in self._values:
                break
            value = value.replace(match.group(0), self._values[match.group(1)])
        return value.strip()

    @property
    def properties(self) -> dict[str, str]:
        """All values, as ``get`` returns them."""
        return {key: self.get(key) for key in self._values}

    def words(self, key: str) -> list[str]:
        """Return a comma-separated value as a list."""
        return [word.strip() for word in self.get(key).split(",") if word.strip()]

    @cached_property
    def default_fs(self) -> str:
        """``hdfs://host:port`` or ``hdfs://nameservice``; of viewfs, that of ``/user``.

        Raises
        ------
        ConfigError
            If fs.defaultFS is not HDFS, which skein requires, and no view of HDFS.
        """
        url = self.get("fs.defaultFS", "file:///").rstrip("/")
        if self.is_view:
            scheme, _colon, rest = (self.mounted(_HOMES) or "").partition("://")
            if scheme != "hdfs" or not rest:
                raise ConfigError(
                    _(
                        "fs.defaultFS in {directory} is {url}, and its mount table links {path} to "
                        "no hdfs:// address."
                    ).format(directory=self.directory / "core-site.xml", url=url, path=_HOMES),
                    _("Add fs.viewfs.mounttable.{table}.link.{path}.").format(
                        table=self._table, path=_HOMES
                    ),
                )
            return f"hdfs://{rest.partition('/')[0]}"
        if not url.startswith("hdfs://"):
            raise ConfigError(
                _("fs.defaultFS in {directory} is {url}.").format(
                    directory=self.directory / "core-site.xml", url=url or _("not set")
                ),
                _("Submarine needs an HDFS there, such as hdfs://namenode:8020."),
            )
        return url

    @property
    def is_view(self) -> bool:
        """Whether the default file system is a mount table of viewfs."""
        return self.get("fs.defaultFS").startswith("viewfs://")

    @property
    def _table(self) -> str:
        """The mount table of ``viewfs:///``."""
        authority = self.get("fs.defaultFS").partition("://")[2].partition("/")[0]
        return (authority if self.is_view else "") or "default"

    @property
    def default_changes(self) -> dict[str, str]:
        """Settings with which a client of skein uses ``default_fs`` where viewfs is the default."""
        if not self.is_view:
            return {}
        homes = (self.mounted(_HOMES) or "").removeprefix(self.default_fs).rstrip("/")
        return {"fs.defaultFS": self.default_fs, "dfs.user.home.dir.prefix": homes or "/"}

    @property
    def resourcemanager_suffixes(self) -> list[str]:
        """Suffixes of the settings of each ResourceManager; one empty one without HA."""
        if self.get("yarn.resourcemanager.ha.enabled").lower() != "true":
            return [""]
        return [f".{name}" for name in self.words("yarn.resourcemanager.ha.rm-ids")] or [""]

    @cached_property
    def resourcemanagers(self) -> list[str]:
        """Base URLs of the ResourceManagers' web services; several with high availability."""
        scheme = self.node_scheme
        word, port = (".https", 8090) if scheme == "https" else ("", 8088)
        key = f"yarn.resourcemanager.webapp{word}.address"
        urls = []
        for suffix in self.resourcemanager_suffixes:
            host = self.get(f"yarn.resourcemanager.hostname{suffix}", "0.0.0.0")  # noqa: S104
            urls.append(f"{scheme}://{self.get(key + suffix) or f'{host}:{port}'}")
        return urls

    @property
    def log_server(self) -> LogServer:
        """The history server of aggregated logs, if there is one, and the scheduler ports."""
        key, servers = "yarn.resourcemanager.scheduler.address", []
        for suffix in self.resourcemanager_suffixes:
            host = self.get(f"yarn.resourcemanager.hostname{suffix}", "0.0.0.0")  # noqa: S104
            servers.append(self.get(key + suffix) or f"{host}:8030")
        aggregated = self.get("yarn.log-aggregation-enable").lower() == "true"
        return LogServer(self.get("yarn.log.server.url") if aggregated else "", servers)

    @property
    def node_scheme(self) -> str:
        """The scheme of the web interfaces of YARN's daemons."""
        return "https" if self.get("yarn.http.policy") == "HTTPS_ONLY" else "http"

    @cached_property
    def webhdfs(self) -> list[str]:
        """Base URLs of the NameNodes' WebHDFS, or of the gateway."""
        if self.gateway:
            return [self.gateway]
        secure = self.get("dfs.http.policy") == "HTTPS_ONLY"
        scheme, word, port = ("https", "https", 9871) if secure else ("http", "http", 9870)
        host = self.default_fs.removeprefix("hdfs://").partition(":")[0]
        service = [f".{host}.{nn}" for nn in self.words(f"dfs.ha.namenodes.{host}")]
        if not service:
            address = self.get(f"dfs.namenode.{word}-address") or f"{host}:{port}"
            if address.partition(":")[0] in ("0.0.0.0", ""):  # noqa: S104 - a default, not a bind
                address = f"{host}:{address.rpartition(':')[2]}"
            return [f"{scheme}://{address}"]
        keys = [f"dfs.namenode.{word}-address{name}" for name in service]
        return [f"{scheme}://{self.get(key)}" for key in keys if self.get(key)]

    def webhdfs_of(self, uri: str) -> list[str]:
        """Return the base URLs of WebHDFS of another file system, ``hdfs://`` or ``webhdfs://``.

        A nameservice is looked up; the web port of a host that the configuration does not name is
        Hadoop's default one.
        """
        scheme, _colon, rest = uri.partition("://")
        authority = rest.partition("/")[0].rpartition("@")[2]
        host = authority.partition(":")[0]
        secure = self.get("dfs.http.policy") == "HTTPS_ONLY" or scheme == "swebhdfs"
        web, word = ("https", "https") if secure else ("http", "http")
        names = self.words(f"dfs.ha.namenodes.{host}")
        suffixes = [f".{host}.{name}" for name in names] or [f".{host}"]
        found = [self.get(f"dfs.namenode.{word}-address{suffix}") for suffix in suffixes]
        if urls := [f"{web}://{address}" for address in found if address]:
            return urls
        if scheme in ("webhdfs", "swebhdfs") and ":" in authority:
            return [f"{web}://{authority}"]
        return [f"{web}://{host}:{DEFAULT_PORTS['swebhdfs' if secure else 'webhdfs']}"]

    def mounted(self, uri: str) -> str | None:
        """Return the URI that a path or a ``viewfs://`` URI means; None: there is no link.

        The longest link counts, as in Hadoop.
        """
        table, _slash, rest = uri.partition("://")[2].partition("/")
        path = uri if uri.startswith("/") else f"/{rest}"
        key = f"fs.viewfs.mounttable.{table or self._table}."
        links = {
            name.removeprefix(f"{key}link."): self.get(name)
            for name in self._values
            if name.startswith(f"{key}link.")
        }
        for word in ("linkFallback", "linkMergeSlash"):
            if target := self.get(key + word):
                links.setdefault("/", target)
        for link in sorted(links, key=len, reverse=True):
            below = link.rstrip("/")
            if path == below or path.startswith(f"{below}/"):
                return links[link].rstrip("/") + (path[len(below) :] or "/")
        return None

    @property
    def token_file_systems(self) -> tuple[str, ...]:
        """URLs of the file systems, besides the default one, of which containers need tokens."""
        if not self.gateway or not self.kerberos:
            return ()
        scheme, _colon, place = self.gateway.partition("://")
        return (f"{'swebhdfs' if scheme == 'https' else 'webhdfs'}://{place}",)

    @cached_property
    def addresses(self) -> frozenset[str]:
        """The prefixes of all URIs that name the default file system, in lower case.

        The nameservice, and the RPC and HTTP addresses of each of its NameNodes.
        """
        authority = self.default_fs.removeprefix("hdfs://").rpartition("@")[2].lower()
        host = authority.partition(":")[0]
        names = self.words(f"dfs.ha.namenodes.{host}")
        found = {f"hdfs://{authority}"}
        if names:
            found |= {f"webhdfs://{authority}", f"swebhdfs://{authority}"}
        suffixes = [f".{host}.{name}" for name in names] or ["", f".{host}"]
        for scheme, keys in _ADDRESS_KEYS.items():
            configured = [self.get(f"dfs.namenode.{key}{end}") for key in keys for end in suffixes]
            if not names and not any(configured):
                configured = [f"{host}:{DEFAULT_PORTS[scheme]}"] if scheme != "hdfs" else []
            for address in filter(None, configured):
                name, _, port = address.lower().rpartition(":")
                if name in ("0.0.0.0", "") and not names:  # noqa: S104 - a default, not a bind
                    name = host
                found.add(f"{scheme}://{name}:{port}")
        return frozenset(found)

    @property
    def gpu_resources(self) -> tuple[str, ...]:
        """The names of GPUs among the resource types of the client's configuration."""
        known = self.words("yarn.resource-types")
        return tuple(name for name in GPU_RESOURCES if name in known)

    @property
    def kerberos(self) -> bool:
        """Whether the cluster requires Kerberos."""
        return self.get("hadoop.security.authentication", "simple") == "kerberos"

    @property
    def service_realm(self) -> str:
        """The realm of the cluster's services; empty if their principals are not configured."""
        for key in ("dfs.namenode.kerberos.principal", "yarn.resourcemanager.principal"):
            if realm := self.get(key).partition("@")[2]:
                return realm
        return ""

    @property
    def token_interval(self) -> float:
        """Seconds between two deliveries of fresh tokens: a quarter of the renewal interval."""
        intervals = [
            self.get(key)
            for key in (
                "dfs.namenode.delegation.token.renew-interval",
                "yarn.resourcemanager.delegation.token.renew-interval",
            )
        ]
        milliseconds = [int(text) for text in intervals if text.isdecimal()]
        return min([_RENEW_MILLISECONDS, *milliseconds]) / 4000

    @property
    def token_lifetime(self) -> float:
        """Seconds after which a token of HDFS cannot be renewed any more."""
        text = self.get("dfs.namenode.delegation.token.max-lifetime")
        return int(text) / 1000 if text.isdecimal() else _TOKEN_LIFETIME

    @property
    def resourcemanager_user(self) -> str:
        """The short name of the ResourceManager's principal; empty if it is not configured."""
        return primary_of(self.get("yarn.resourcemanager.principal"))

    @property
    def https_urls(self) -> list[str]:
        """Base URLs of the interfaces of the cluster that are reached over HTTPS."""
        urls = (*self.resourcemanagers, *self.webhdfs)
        return [url for url in urls if url.startswith("https:")]

    @property
    def on_loopback(self) -> bool:
        """Whether the ResourceManager is on this machine's loopback device (a minicluster)."""
        return all("//127.0.0.1:" in url or "//localhost:" in url for url in self.resourcemanagers)

    def fingerprint(self, *more: str) -> str:
        """Return a hash of the directory's files and ``more``."""
        digest = hashlib.sha256("\0".join(more).encode())
        for path in sorted(self.directory.iterdir()):
            if path.suffix in (".xml", ".properties") and path.is_file():
                digest.update(f"\0{path.name}\0".encode())
                digest.update(path.read_bytes())
        return digest.hexdigest()[:16]


def read_properties(path: Path) -> dict[str, str]:
    """Return name -> value of a Hadoop XML file; empty if the file does not exist."""
    try:
        if path.stat().st_size > _MAX_FILE:
            raise ConfigError(
                _("{path} is too large for a Hadoop configuration.").format(path=path)
            )
        root = ElementTree.parse(path).getroot()  # noqa: S314 - the administrator's own file
    except FileNotFoundError:
        return {}
    except (OSError, ElementTree.ParseError) as exc:
        raise ConfigError(
            _("{path} cannot be read as Hadoop configuration: {error}.").format(
                path=path, error=exc
            )
        ) from exc
    found: dict[str, str] = {}
    for entry in root.iter("property"):
        name, value = entry.findtext("name"), entry.findtext("value")
        if name:
            found[name.strip()] = value or ""
    return found


def write_properties(values: Mapping[str, str]) -> bytes:
    """Return a Hadoop XML file with these values."""
    root = ElementTree.Element("configuration")
    for name, value in values.items():
        entry = ElementTree.SubElement(root, "property")
        ElementTree.SubElement(entry, "name").text = name
        ElementTree.SubElement(entry, "value").text = value
    body: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return body
