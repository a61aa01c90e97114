"""Find the HDFS of a URI: name nodes, user, credentials and certificates.

The agent of a job writes this configuration for the program (``SUBMARINE_DATA_CONFIG``); it has no
secrets. Without it, as in a notebook, Hadoop's client configuration is used (``HADOOP_CONF_DIR``).
"""

from __future__ import annotations

import functools
import getpass
import json
import os
from dataclasses import dataclass, field
from typing import NamedTuple

from submarine_data.remote.errors import RemoteError
from submarine_data.remote.hadoop_settings import (
    default_web_url,
    hdfs_clients,
    read_hadoop_settings,
)
from submarine_runtime.cluster_http import Access, Authentication, simple_access
from submarine_runtime.kerberos import (
    TOKEN_FILE_VARIABLE,
    GatewayTokens,
    Negotiation,
    WebHdfsTokens,
    container_tokens,
)
from submarine_runtime.protocol import HdfsClients, from_json
from submarine_runtime.translation import _

#: Names the file that the agent writes.
CONFIGURATION_VARIABLE = "SUBMARINE_DATA_CONFIG"
HDFS_SCHEMES = ("hdfs", "webhdfs", "swebhdfs", "viewfs")
_MAX_LINKS = 8


class Place(NamedTuple):
    """A path in one HDFS.

    Attributes
    ----------
    service
        The URI of the file system, ``hdfs://authority``.
    urls
        Base URLs of the WebHDFS of its NameNodes.
    path
        The path, without quoting.
    """

    service: str
    urls: tuple[str, ...]
    path: str


@dataclass(frozen=True)
class ClientConfiguration:
    """The HDFS that a process can use, and how it signs in.

    Parameters
    ----------
    hdfs
        Addresses.
    user
        User of simple authentication; empty: that of the process.
    authentication
        ``simple``, ``token`` (those of the container) or ``ticket``.
    ca
        File with the certificates of the cluster's authorities; empty: those of the system.
    gateway
        Whether the WebHDFS of the default file system is an HttpFS gateway.
    """

    hdfs: HdfsClients = field(default_factory=HdfsClients)
    user: str = ""
    authentication: str = "simple"
    ca: str = ""
    gateway: bool = False

    def place(self, uri: str) -> Place:
        """Return the place of a URI with one of ``HDFS_SCHEMES``.

        Raises
        ------
        RemoteError
            If the file system is not known.
        """
        for _number in range(_MAX_LINKS):
            scheme, authority, path = split_uri(uri)
            if not authority and scheme in ("hdfs", "viewfs"):
                default, authority, _path = split_uri(self._default(uri))
                scheme = default or scheme
            if scheme != "viewfs":
                break
            uri = self._mounted(uri, authority, path)
        else:
            raise RemoteError(_("{uri} is a mount of viewfs that leads to itself.").format(uri=uri))
        name = authority.rpartition("@")[2].lower()
        if scheme in ("webhdfs", "swebhdfs"):
            web = "https" if scheme == "swebhdfs" else "http"
            urls = self._named(name) or [f"{web}://{name}"]
        else:
            host = name.partition(":")[0]
            urls = self._named(name) or [default_web_url(host, self.hdfs.settings)]
        if not name:
            raise RemoteError(_("{uri} names no host of HDFS.").format(uri=uri))
        return Place(f"hdfs://{name}", tuple(urls), path or "/")

    def _named(self, name: str) -> list[str]:
        """Return the URLs of a nameservice or an RPC address, whose names ignore case."""
        found = {key.lower(): urls for key, urls in self.hdfs.web.items()}
        return found.get(name) or found.get(f"{name}:8020") or []

    def _default(self, uri: str) -> str:
        if not self.hdfs.default:
            raise RemoteError(
                _(
                    "{uri} names no host, and no default file system is configured: write "
                    "hdfs://HOST:PORT/PATH, or set HADOOP_CONF_DIR to the cluster's client "
                    "configuration."
                ).format(uri=uri)
            )
        return self.hdfs.default

    def _mounted(self, uri: str, table: str, path: str) -> str:
        links = self.hdfs.mounts.get(table) or self.hdfs.mounts.get("default") or {}
        for link in sorted(links, key=len, reverse=True):
            if not link or path == link or path.startswith(f"{link.rstrip('/')}/"):
                return links[link].rstrip("/") + "/" + path[len(link) :].lstrip("/")
        raise RemoteError(
            _("{uri} is below no mount of viewfs; those are: {mounts}.").format(
                uri=uri, mounts=", ".join(sorted(links)) or _("none")
            )
        )

    def access(self, place: Place) -> Access:
        """Return the authentication at the NameNodes of a place, and their certificates."""
        authentication: Authentication
        if self.authentication == "token":
            tokens = container_tokens()
            authentication = (
                GatewayTokens(tokens)
                if self.is_gateway(place)
                else WebHdfsTokens(tokens, services=self._services(place))
            )
        elif self.authentication == "ticket":
            authentication = Negotiation()
        else:
            authentication = simple_access(self.user or process_user()).authentication
        return Access(authentication, _certificates(self.ca))

    def is_gateway(self, place: Place) -> bool:
        """Return whether the WebHDFS of a place is an HttpFS gateway."""
        return self.gateway and place.service == self.hdfs.default.lower()

    def _services(self, place: Place) -> tuple[str, ...]:
        """Return the services of the tokens that a file system accepts."""
        name = place.service[len("hdfs://") :]
        return (f"ha-hdfs:{name}", name)


def split_uri(uri: str) -> tuple[str, str, str]:
    """Return scheme, authority and path of a URI, whose path may have ``?``, ``#`` and ``%``."""
    scheme, mark, rest = uri.partition("://")
    if not mark:
        return "", "", uri
    authority, slash, path = rest.partition("/")
    return scheme.lower(), authority, slash + path


def process_user() -> str:
    """Return the user of simple authentication, as Hadoop's clients determine it."""
    return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()


def client_configuration() -> ClientConfiguration:
    """Return the configuration of this process.

    Raises
    ------
    RemoteError
        If its files cannot be read.
    """
    environ = os.environ
    return _read(
        environ.get(CONFIGURATION_VARIABLE, ""),
        environ.get("HADOOP_CONF_DIR", ""),
        bool(environ.get(TOKEN_FILE_VARIABLE)),
    )


def use_hadoop_configuration(directory: str | os.PathLike[str], ca: str = "") -> None:
    """Use Hadoop's client configuration in a directory, in this process and its children.

    Parameters
    ----------
    directory
        With ``core-site.xml`` and ``hdfs-site.xml``. They are read with the first URI.
    ca
        File with the certificates of the cluster's authorities, in PEM; empty: those of the system.
    """
    os.environ["HADOOP_CONF_DIR"] = os.fspath(directory)
    os.environ.pop(CONFIGURATION_VARIABLE, None)
    if ca:
        os.environ[_CA_VARIABLE] = ca


#: Names the certificates of the cluster where there is no file of an agent.
_CA_VARIABLE = "SUBMARINE_DATA_CA"


@functools.lru_cache(maxsize=8)
def _read(path: str, directory: str, tokens: bool) -> ClientConfiguration:
    if path:
        return read_configuration(path)
    if not directory:
        return ClientConfiguration()
    hdfs = hdfs_clients(read_hadoop_settings(directory))
    secure = hdfs.settings.get("hadoop.security.authentication") == "kerberos"
    way = ("token" if tokens else "ticket") if secure else "simple"
    return ClientConfiguration(hdfs, authentication=way, ca=os.environ.get(_CA_VARIABLE, ""))


def read_configuration(path: str) -> ClientConfiguration:
    """Return the configuration in the file of an agent.

    Raises
    ------
    RemoteError
        If the file cannot be read.
    """
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        return ClientConfiguration(
            from_json(HdfsClients, data["hdfs"]),
            str(data.get("user") or ""),
            str(data.get("authentication") or "simple"),
            str(data.get("ca") or ""),
            bool(data.get("gateway")),
        )
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as exc:
        raise RemoteError(
            _("{path} ({variable}) cannot be read: {error}.").format(
                path=path, variable=CONFIGURATION_VARIABLE, error=exc
            )
        ) from exc


@functools.lru_cache(maxsize=8)
def _certificates(path: str) -> str:
    if not path:
        return ""
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except (OSError, ValueError) as exc:
        raise RemoteError(
            _("The certificates in {path} cannot be read: {error}.").format(path=path, error=exc)
        ) from exc
