"""Writes the cluster's Hadoop configuration: one set of files for clients, one for each daemon.

What stands in them is ``config``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from submarine_minicluster.hadoop import config
from submarine_minicluster.layout import Layout
from submarine_minicluster.machine import replace_file
from submarine_minicluster.settings import Saved

_LOG4J = """\
log4j.rootLogger=INFO,FILE
log4j.appender.FILE=org.apache.log4j.RollingFileAppender
log4j.appender.FILE.File=${submarine.log}
log4j.appender.FILE.MaxFileSize=20MB
log4j.appender.FILE.MaxBackupIndex=2
log4j.appender.FILE.layout=org.apache.log4j.PatternLayout
log4j.appender.FILE.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR
"""

_LOG4J_CLIENT = """\
log4j.rootLogger=WARN,STDERR
log4j.appender.STDERR=org.apache.log4j.ConsoleAppender
log4j.appender.STDERR.target=System.err
log4j.appender.STDERR.layout=org.apache.log4j.PatternLayout
log4j.appender.STDERR.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR
"""


def _write_xml(path: Path, properties: config.Properties) -> None:
    root = ElementTree.Element("configuration")
    for name, value in properties.items():
        entry = ElementTree.SubElement(root, "property")
        ElementTree.SubElement(entry, "name").text = name
        ElementTree.SubElement(entry, "value").text = value
    ElementTree.indent(root)
    replace_file(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _write_set(directory: Path, sites: Mapping[str, config.Properties], log4j: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, properties in sites.items():
        _write_xml(directory / f"{name}.xml", properties)
    replace_file(directory / "log4j.properties", log4j.encode())


def write_policy(layout: Layout, saved: Saved) -> None:
    """Write for the daemons that have clients which users they serve; they read it when told."""
    for daemon in ("namenode", "resourcemanager"):
        path = layout.conf(daemon) / "hadoop-policy.xml"
        _write_xml(path, config.hadoop_policy(saved.users))


def write(layout: Layout, saved: Saved, lib: Path) -> None:
    """Write every configuration file of the cluster."""
    settings = saved.settings
    client = config.yarn_client(layout, saved, lib)
    common: dict[str, config.Properties] = {
        "core-site": config.core_site(layout, saved.ports),
        "hdfs-site": config.hdfs_site(layout, saved.ports),
        "mapred-site": config.mapred_site(saved.ports),
    }
    if settings.gpus:
        common["resource-types"] = {"yarn.resource-types": "yarn.io/gpu"}
    _write_set(layout.client_conf, {**common, "yarn-site": client}, _LOG4J_CLIENT)
    common["core-site"] = config.patient(common["core-site"])
    common["hadoop-policy"] = config.hadoop_policy(saved.users)
    for daemon in ("namenode", "datanode", "historyserver"):
        _write_set(layout.conf(daemon), {**common, "yarn-site": client}, _LOG4J)
    for pages in ("namenode/webapps/hdfs", "datanode/webapps/datanode"):
        # Both daemons refuse to start without the directory of their web pages.
        (layout.root / "conf" / pages).mkdir(parents=True, exist_ok=True)
    rm_site = {**client, **config.resourcemanager(layout, settings)}
    sites = {
        **common,
        "yarn-site": rm_site,
        "capacity-scheduler": config.capacity_scheduler(settings),
    }
    _write_set(layout.conf("resourcemanager"), sites, _LOG4J)
    for node in config.nodemanagers(settings.nodes):
        sites = {**common, "yarn-site": {**client, **config.nodemanager(layout, saved, node)}}
        if settings.gpus:
            # No resource plugin: the node offers GPUs which need not exist, and isolates none.
            gpus = {"yarn.nodemanager.resource-type.yarn.io/gpu": str(settings.gpus)}
            sites["node-resources"] = gpus
        _write_set(layout.conf(node), sites, _LOG4J)
