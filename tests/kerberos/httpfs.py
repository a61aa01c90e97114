"""An HttpFS gateway in front of the HDFS of a Kerberised minicluster with HTTPS."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from submarine_jobs.backends.yarn.cluster import write_properties
from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import HUB
from submarine_minicluster.hadoop.maven import copy_jars
from submarine_minicluster.machine import accepts_connections, choose_ports, find_java
from tests.waiting import until

MAIN = "org.apache.hadoop.fs.http.server.HttpFSServerWebServer"
LOG4J = """\
log4j.rootLogger=INFO,OUT
log4j.appender.OUT=org.apache.log4j.ConsoleAppender
log4j.appender.OUT.layout=org.apache.log4j.PatternLayout
log4j.appender.OUT.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""


def jars() -> Path:
    """Return the directory of HttpFS's jars, which the first test run downloads."""
    place = platformdirs.user_cache_path("jupyter-submarine") / "hadoop" / "httpfs-3.4.2"
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        pom = Path(__file__).with_name("httpfs_pom.xml")
        with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
            copy_jars("HttpFS", pom, Path(scratch) / "lib", find_java(), (), print)
            (Path(scratch) / "lib").rename(place)
    return place


@contextmanager
def gateway(cluster: Minicluster, home: Path) -> Iterator[str]:
    """Run HttpFS as the service that may act for the users; return its address."""
    layout, java = cluster.layout, find_java()
    port = choose_ports(["httpfs"], set())["httpfs"]
    conf = home / "conf"
    shutil.copytree(layout.client_conf, conf)
    shutil.copy(layout.conf("namenode") / "ssl-server.xml", conf)
    (conf / "log4j.properties").write_text(LOG4J)
    (conf / "httpfs-site.xml").write_bytes(write_properties(_site(cluster, conf, port)))
    folders = {name: str(home / name) for name in ("log", "temp")}
    for folder in folders.values():
        Path(folder).mkdir()
    options = {"home": str(home), "config": str(conf), **folders}
    words = [
        str(java.binary),
        *("--add-opens", "java.base/java.lang=ALL-UNNAMED"),
        *("-Xmx192m", "-XX:+UseSerialGC", f"-Djava.security.krb5.conf={layout.krb5_conf}"),
        *(f"-Dhttpfs.{name}.dir={value}" for name, value in options.items()),
        f"-Dlog4j.configuration=file:{conf / 'log4j.properties'}",
        *("-cp", f"{conf}:{jars()}/*", MAIN),
    ]
    with (
        (home / "out").open("wb") as output,
        subprocess.Popen(words, stdout=output, stderr=output, cwd=home) as process,
    ):
        try:
            started = home / "out"
            until(
                lambda: "Jersey application" in started.read_text() or process.poll() is not None,
                started.read_text,
                seconds=90,
            )
            assert process.poll() is None, started.read_text()[-2000:]
            assert accepts_connections(port)
            yield f"https://localhost:{port}"
        finally:
            process.terminate()


def _site(cluster: Minicluster, conf: Path, port: int) -> Mapping[str, str]:
    layout = cluster.layout
    prefix = "httpfs.hadoop.authentication"
    web = {
        "type": "kerberos",
        "kerberos.principal": "HTTP/localhost",
        "kerberos.keytab": str(layout.keytab("HTTP")),
        "signature.secret.file": str(layout.kerberos / "http-secret"),
    }
    return {
        "httpfs.http.port": str(port),
        "httpfs.http.hostname": "localhost",
        "httpfs.ssl.enabled": "true",
        "httpfs.hadoop.config.dir": str(conf),
        f"{prefix}.type": "kerberos",
        f"{prefix}.kerberos.principal": f"{HUB}@MINICLUSTER.TEST",
        f"{prefix}.kerberos.keytab": str(layout.keytab(HUB)),
        **{f"hadoop.http.authentication.{name}": value for name, value in web.items()},
    }
