"""Paths of a cluster's files. Creates directories, and neither reads nor writes files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import platformdirs


def clusters_dir() -> Path:
    """Return the directory that contains all miniclusters of this user."""
    return platformdirs.user_data_path("jupyter-submarine") / "minicluster"


@dataclass(frozen=True)
class Layout:
    """The directory of one cluster.

    Attributes
    ----------
    root
        Directory of the cluster.
    """

    root: Path

    @property
    def cluster_file(self) -> Path:
        """Settings and ports of the cluster."""
        return self.root / "cluster.json"

    @property
    def client_conf(self) -> Path:
        """HADOOP_CONF_DIR of clients; contains no settings of daemons."""
        return self.root / "conf" / "client"

    def conf(self, daemon: str) -> Path:
        """Return the configuration directory of a daemon."""
        return self.root / "conf" / daemon

    def data(self, daemon: str) -> Path:
        """Return the directory of the data that a daemon keeps between starts."""
        return self.root / "data" / daemon

    def log(self, daemon: str) -> Path:
        """Return the log file of a daemon."""
        return self.root / "logs" / f"{daemon}.log"

    def output(self, daemon: str) -> Path:
        """Return the file with standard output and error of a daemon's JVM."""
        return self.root / "logs" / f"{daemon}.out"

    def pidfile(self, daemon: str) -> Path:
        """Return the file with the process identity of a daemon."""
        return self.root / "run" / f"{daemon}.json"

    @property
    def kerberos(self) -> Path:
        """Files of a cluster with Kerberos: principals, keytabs, ticket caches, certificates."""
        return self.root / "kerberos"

    @property
    def krb5_conf(self) -> Path:
        """Kerberos configuration, for KRB5_CONFIG."""
        return self.kerberos / "krb5.conf"

    @property
    def principals(self) -> Path:
        """Principals with their passwords, which the KDC reads."""
        return self.kerberos / "principals"

    def keytab(self, name: str) -> Path:
        """Return the keytab of a user or service."""
        return self.kerberos / "keytabs" / f"{name}.keytab"

    def tickets(self, user: str) -> Path:
        """Return the ticket cache file of a user."""
        return self.kerberos / "tickets" / user

    @property
    def ca(self) -> Path:
        """Certificate authority of a cluster with HTTPS, as PEM."""
        return self.kerberos / "ca.pem"

    @property
    def keystore(self) -> Path:
        """Key and certificate of the daemons' web servers, for Java."""
        return self.kerberos / "keystore.p12"

    @property
    def truststore(self) -> Path:
        """The certificate authority, for Java."""
        return self.kerberos / "truststore.p12"

    @property
    def key_provider(self) -> str:
        """URI of the file with the keys of encryption zones."""
        return f"jceks://file{self.root / 'data' / 'keys.jceks'}"

    @property
    def bin(self) -> Path:
        """Directory of the client commands `yarn` and `hdfs`."""
        return self.root / "bin"

    @property
    def tmp(self) -> Path:
        """Temporary files of the daemons; only `stop` removes them."""
        return self.root / "tmp"

    def make(self) -> None:
        """Create the directories that daemons expect, with access for the owner only."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.root.chmod(0o700)
        for name in ("conf", "data", "logs", "run", "bin", "tmp"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
