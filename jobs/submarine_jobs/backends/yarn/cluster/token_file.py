"""Sign in by the delegation tokens of a file, in place of a ticket.

A JupyterHub with a service principal writes such a file for each of its users
(``submarine_server.hub``) and replaces it before the tokens expire.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from dataclasses import replace

from submarine_jobs.backends.yarn.cluster.hadoop_configuration import HadoopConf
from submarine_runtime.kerberos import HDFS_TOKEN, TOKEN_FILE_VARIABLE, Token

_NAMESERVICE = "ha-hdfs:"


def token_file_name() -> str:
    """Return the path of the token file of this process; empty if there is none."""
    return os.environ.get(TOKEN_FILE_VARIABLE, "")


def client_tokens(conf: HadoopConf, tokens: Iterable[Token]) -> list[Token]:
    """Return tokens with the services by which the clients of HDFS and YARN look for them.

    Java looks for the IP address of a NameNode, hdfs-native for its name in the configuration, and
    both for the nameservice if there is one.

    Parameters
    ----------
    tokens
        As the interfaces of NameNode and ResourceManager return them.
    """
    named = native_service(conf)
    found = []
    for token in tokens:
        services = {_resourcemanager_service(conf)}
        if token.kind == HDFS_TOKEN:
            services = {named} if named.startswith(_NAMESERVICE) else {token.service, named}
        found += [replace(token, alias=it, service=it) for it in sorted(services)]
    return found


def native_service(conf: HadoopConf) -> str:
    """Return the service by which hdfs-native looks for the token of the file system."""
    authority = conf.default_fs.removeprefix("hdfs://")
    named = conf.words(f"dfs.ha.namenodes.{authority}")
    return f"{_NAMESERVICE}{authority}" if named else authority


def _resourcemanager_service(conf: HadoopConf) -> str:
    found = []
    for end in conf.resourcemanager_suffixes:
        host = conf.get(f"yarn.resourcemanager.hostname{end}")
        address = conf.get(f"yarn.resourcemanager.address{end}") or f"{host}:8032"
        name, _colon, port = address.partition(":")
        if conf.get("hadoop.security.token.service.use_ip", "true") == "true":
            name = socket.gethostbyname(name)
        found.append(f"{name}:{port}")
    return ",".join(found)
