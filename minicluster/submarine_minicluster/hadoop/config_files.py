"""Write the configuration files: one set for clients and one for each daemon."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from submarine_minicluster.hadoop.config import (
    Properties,
    capacity_scheduler,
    core_site,
    hadoop_policy,
    hdfs_site,
    mapred_site,
    namenode_core,
    nodemanager,
    nodemanagers,
    replicas,
    resourcemanager,
    with_daemon_retries,
    yarn_client,
)
from submarine_minicluster.hadoop.ha_config import ha_sites
from submarine_minicluster.hadoop.secure_config import secure_sites
from submarine_minicluster.layout import Layout
from submarine_minicluster.settings import SavedCluster
from submarine_runtime.files import replace_file

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


def _write_xml(path: Path, properties: Properties) -> None:
    root = ElementTree.Element("configuration")
    for name, value in properties.items():
        entry = ElementTree.SubElement(root, "property")
        ElementTree.SubElement(entry, "name").text = name
        ElementTree.SubElement(entry, "value").text = value
    ElementTree.indent(root)
    # Daemons reload their configuration: a NodeManager ends if ``core-site.xml`` is empty.
    replace_file(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _write_set(directory: Path, sites: Mapping[str, Properties], log4j: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, properties in sites.items():
        _write_xml(directory / f"{name}.xml", properties)
    replace_file(directory / "log4j.properties", log4j.encode())


def write_policy(layout: Layout, saved: SavedCluster) -> None:
    """Write the list of admitted users, which NameNode and ResourceManager reload on request."""
    for kind in ("namenode", "resourcemanager"):
        for daemon in replicas(kind, ha=saved.settings.ha):
            path = layout.conf(daemon) / "hadoop-policy.xml"
            _write_xml(path, hadoop_policy(saved.users))


def write_configuration(layout: Layout, saved: SavedCluster, lib: Path) -> None:
    """Write all configuration files of the cluster."""
    settings = saved.settings

    def write(directory: Path, sites: Mapping[str, Properties]) -> None:
        daemon = directory != layout.client_conf
        if settings.ha:
            sites = ha_sites(sites, layout, saved, directory.name)
        if settings.kerberos:
            sites = secure_sites(sites, layout, saved, daemon=daemon)
        chosen = settings.site_properties
        sites = {site: {**values, **chosen.get(site, {})} for site, values in sites.items()}
        _write_set(directory, sites, _LOG4J if daemon else _LOG4J_CLIENT)

    client = yarn_client(layout, saved, lib)
    common: dict[str, Properties] = {
        "core-site": core_site(layout, saved),
        "hdfs-site": hdfs_site(layout, saved),
        "mapred-site": mapred_site(saved),
    }
    if settings.gpus:
        common["resource-types"] = {"yarn.resource-types": "yarn.io/gpu"}
    write(layout.client_conf, {**common, "yarn-site": client})
    common["core-site"] = with_daemon_retries(common["core-site"])
    common["hadoop-policy"] = hadoop_policy(saved.users)
    namenodes = replicas("namenode", ha=settings.ha)
    for daemon in namenodes:
        core = namenode_core(common["core-site"], layout, settings)
        write(layout.conf(daemon), {**common, "core-site": core, "yarn-site": client})
    for daemon in ("datanode", "historyserver"):
        write(layout.conf(daemon), {**common, "yarn-site": client})
    for pages in (*(f"{one}/webapps/hdfs" for one in namenodes), "datanode/webapps/datanode"):
        # The daemons do not start without the directory of their web pages.
        (layout.root / "conf" / pages).mkdir(parents=True, exist_ok=True)
    rm_site = {**client, **resourcemanager(layout, settings)}
    sites = {
        **common,
        "yarn-site": rm_site,
        "capacity-scheduler": capacity_scheduler(settings),
    }
    for daemon in replicas("resourcemanager", ha=settings.ha):
        write(layout.conf(daemon), sites)
    for node in nodemanagers(settings.nodes):
        sites = {**common, "yarn-site": {**client, **nodemanager(layout, saved, node)}}
        if settings.gpus:
            # Without a resource plugin a node may offer GPUs that do not exist, and isolates none.
            gpus = {"yarn.nodemanager.resource-type.yarn.io/gpu": str(settings.gpus)}
            sites["node-resources"] = gpus
        write(layout.conf(node), sites)
    if settings.kerberos:
        _write_set(layout.conf("kdc"), {}, _LOG4J)
