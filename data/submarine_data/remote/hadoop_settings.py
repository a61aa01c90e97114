"""Hadoop's client configuration: the HDFS that it names, and its XML files.

Settings are those of ``core-default.xml`` and ``hdfs-default.xml`` of Hadoop 3.
"""

from __future__ import annotations

import os
import re
from typing import Mapping
from xml.etree import ElementTree

from submarine_data.remote.errors import RemoteError
from submarine_runtime.protocol import HdfsClients
from submarine_runtime.translation import _

_FILES = ("core-site.xml", "hdfs-site.xml")
_MAX_FILE = 8 << 20
_MAX_SUBSTITUTIONS = 20
_VARIABLE = re.compile(r"\$\{([^}${]+)\}")
_MOUNT = re.compile(r"fs\.viewfs\.mounttable\.([^.]+)\.(?:link\.(/.*)|(linkFallback))\Z")
#: Hadoop's default ports of the web interface of a NameNode.
_WEB_PORTS = {"http": 9870, "https": 9871}
#: Settings that a client needs besides the addresses. None of them is a secret.
_SECURITY = (
    "hadoop.security.authentication",
    "hadoop.rpc.protection",
    "dfs.data.transfer.protection",
    "dfs.encrypt.data.transfer",
    "dfs.namenode.kerberos.principal",
    "dfs.http.policy",
    "dfs.client.use.datanode.hostname",
)


def read_hadoop_settings(directory: str) -> dict[str, str]:
    """Return the settings of a configuration directory, with ``${...}`` replaced.

    Raises
    ------
    RemoteError
        If a file is no Hadoop configuration.
    """
    raw: dict[str, str] = {}
    for name in _FILES:
        path = os.path.join(directory, name)
        try:
            with open(path, "rb") as file:
                root = ElementTree.fromstring(file.read(_MAX_FILE))  # noqa: S314 - the user's own
        except FileNotFoundError:
            continue
        except (OSError, ElementTree.ParseError) as exc:
            raise RemoteError(
                _("{path} cannot be read as Hadoop configuration: {error}.").format(
                    path=path, error=exc
                )
            ) from exc
        for entry in root.iter("property"):
            key = entry.findtext("name")
            if key:
                raw[key.strip()] = (entry.findtext("value") or "").strip()
    return {key: _substituted(value, raw) for key, value in raw.items()}


def _substituted(value: str, settings: Mapping[str, str]) -> str:
    for _number in range(_MAX_SUBSTITUTIONS):
        match = _VARIABLE.search(value)
        if match is None or match.group(1) not in settings:
            break
        value = value.replace(match.group(0), settings[match.group(1)])
    return value


def web_scheme(settings: Mapping[str, str]) -> str:
    """Return the scheme of the NameNodes' web interfaces."""
    return "https" if settings.get("dfs.http.policy") == "HTTPS_ONLY" else "http"


def default_web_url(host: str, settings: Mapping[str, str]) -> str:
    """Return the base URL of WebHDFS on a host of which only the name is known."""
    scheme = web_scheme(settings)
    return f"{scheme}://{host}:{_WEB_PORTS[scheme]}"


def hdfs_clients(settings: Mapping[str, str]) -> HdfsClients:
    """Return the default file system, the nameservices and the mount tables of a configuration."""
    scheme = web_scheme(settings)
    default = settings.get("fs.defaultFS", "").rstrip("/")
    known = default.startswith(("hdfs://", "viewfs://"))
    found = HdfsClients(default=default if known else "")
    found.settings = {key: settings[key] for key in _SECURITY if settings.get(key)}
    for service in _words(settings.get("dfs.nameservices", "")):
        nodes = _words(settings.get(f"dfs.ha.namenodes.{service}", ""))
        suffixes = [f".{service}.{node}" for node in nodes] or [f".{service}"]
        web = [settings.get(f"dfs.namenode.{scheme}-address{end}", "") for end in suffixes]
        rpc = [settings.get(f"dfs.namenode.rpc-address{end}", "") for end in suffixes]
        found.web[service] = [f"{scheme}://{address}" for address in web if address]
        found.rpc[service] = [address for address in rpc if address]
        for address, url in zip(rpc, web):
            if address and url:
                found.web[address.lower()] = [f"{scheme}://{url}"]
    for key, value in settings.items():
        match = _MOUNT.match(key)
        if match:
            found.mounts.setdefault(match.group(1), {})[match.group(2) or ""] = value
    authority = _authority(default, found.mounts)
    if authority and authority not in found.web:
        host = authority.partition(":")[0]
        address = settings.get(f"dfs.namenode.{scheme}-address", "")
        name, _colon, port = address.rpartition(":")
        if address and name in ("", "0.0.0.0"):  # noqa: S104 - a default, not a bind
            address = f"{host}:{port}"
        url = f"{scheme}://{address}" if address else default_web_url(host, settings)
        found.web[authority.lower()] = [url]
    return found


def _authority(default: str, mounts: Mapping[str, Mapping[str, str]]) -> str:
    """Return the authority of the default file system; of viewfs, that of the users' homes."""
    scheme, _colon, authority = default.partition("://")
    if scheme == "viewfs":
        links = mounts.get(authority, {})
        default = links.get("/user") or links.get("") or ""
    return default[len("hdfs://") :].partition("/")[0] if default.startswith("hdfs://") else ""


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
