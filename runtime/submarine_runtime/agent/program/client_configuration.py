"""Write the configuration of HDFS for the clients in the program: no secrets.

``submarine_data`` reads the JSON file; Hadoop's own clients, hdfs-native and Spark read the XML
files. The program's credentials are the container's: the token file of YARN, or a name.
"""

from __future__ import annotations

import json
import os
from typing import Mapping
from xml.sax.saxutils import escape

from submarine_runtime.files import replace_file
from submarine_runtime.protocol import AgentConfig, core_settings, hdfs_settings, to_json
from submarine_runtime.storage import Scratch, make_directories

#: Names the file that ``submarine_data`` reads.
VARIABLE = "SUBMARINE_DATA_CONFIG"
_DIRECTORY = "hadoop"


def place_client_configuration(config: AgentConfig, scratch: Scratch) -> dict[str, str]:
    """Write the files to the scratch directory, and return the variables of the program.

    The XML files are not written if the container's environment or the user's names a directory
    with a core-site.xml; nothing is written for a job without HDFS.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    store, hdfs = config.store, config.hdfs
    if not hdfs.default:
        return {}
    variables = {}
    directory = scratch.path(_DIRECTORY)
    make_directories(directory)
    present = config.env.get("HADOOP_CONF_DIR") or os.environ.get("HADOOP_CONF_DIR") or ""
    if not os.path.isfile(os.path.join(present, "core-site.xml")):
        replace_file(os.path.join(directory, "core-site.xml"), _xml(core_settings(hdfs)))
        replace_file(os.path.join(directory, "hdfs-site.xml"), _xml(hdfs_settings(hdfs)))
        variables["HADOOP_CONF_DIR"] = directory
    certificates = os.path.join(directory, "ca.pem") if store.ca else ""
    if certificates:
        replace_file(certificates, store.ca.encode())
    document = {
        "hdfs": to_json(hdfs),
        "user": store.user or "",
        "authentication": store.authentication,
        "ca": certificates,
        "gateway": store.gateway,
    }
    variables[VARIABLE] = os.path.join(directory, "submarine-data.json")
    replace_file(variables[VARIABLE], json.dumps(document).encode())
    if store.user and not store.uses_tokens and "HADOOP_USER_NAME" not in os.environ:
        variables["HADOOP_USER_NAME"] = store.user
    return variables


def _xml(settings: Mapping[str, str]) -> bytes:
    """Return a Hadoop configuration file."""
    properties = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in settings.items()
    )
    return f"<configuration>\n{properties}</configuration>\n".encode()
