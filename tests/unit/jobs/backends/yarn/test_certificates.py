"""The certificate authorities of a cluster, from PEM files and Java's truststores."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.cluster import HadoopConf, authorities
from submarine_jobs.errors import ConfigError
from submarine_jobs.model import Profile
from submarine_minicluster.hadoop import ensure_certificates
from submarine_minicluster.layout import Layout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """The certificates of a minicluster: a CA in PEM, and a truststore of type PKCS12."""
    layout = Layout(tmp_path_factory.mktemp("cluster"))
    layout.kerberos.mkdir(parents=True)
    ensure_certificates(layout, "localhost")
    return layout


def configuration(directory: Path, **properties: str) -> HadoopConf:
    rows = "".join(
        f"<property><name>ssl.client.truststore.{name}</name><value>{value}</value></property>"
        for name, value in properties.items()
    )
    (directory / "core-site.xml").write_text("<configuration/>")
    (directory / "ssl-client.xml").write_text(f"<configuration>{rows}</configuration>")
    return HadoopConf(directory)


def der(pem: str) -> list[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=pem)
    return [str(entry["serialNumber"]) for entry in context.get_ca_certs()]


def test_a_pem_file_of_the_profile(made: Layout, tmp_path: Path) -> None:
    profile = Profile(settings={"ca_file": str(made.ca)})
    assert authorities(profile, configuration(tmp_path)) == made.ca.read_text()


def test_a_truststore_of_type_pkcs12(made: Layout, tmp_path: Path) -> None:
    conf = configuration(tmp_path, location=str(made.truststore), password="changeit")
    assert der(authorities(Profile(), conf)) == der(made.ca.read_text())


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("keytool") is None, reason="there is no keytool of a JDK")
def test_a_truststore_of_type_jks(made: Layout, tmp_path: Path) -> None:
    store = tmp_path / "truststore.jks"
    words = ["keytool", "-importcert", "-noprompt", "-storetype", "JKS", "-alias", "ca"]
    words += ["-file", str(made.ca), "-keystore", str(store), "-storepass", "changeit"]
    subprocess.run(words, check=True, capture_output=True, timeout=60)
    # Reading a JKS truststore needs no password.
    conf = configuration(tmp_path, location=str(store))
    assert der(authorities(Profile(), conf)) == der(made.ca.read_text())


def test_without_a_truststore_the_system_applies(tmp_path: Path) -> None:
    assert authorities(Profile(), configuration(tmp_path)) == ""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"no store", "cannot be read"),
        (b"\xfe\xed\xfe\xed\0\0\0\2\0\0\0\1", "cannot be read"),
        (b"\xfe\xed\xfe\xed\0\0\0\2\0\0\0\1\0\0\0\1\0\1a\0\0\0\0\0\0\0\0", "private key"),
        (None, "cannot be read: No such file"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes | None, words: str) -> None:
    store = tmp_path / "store"
    if content is not None:
        store.write_bytes(content)
    with pytest.raises(ConfigError, match=words) as caught:
        authorities(Profile(), configuration(tmp_path, location=str(store), password="x"))
    assert "Set ca_file" in str(caught.value)


def test_a_pem_file_without_a_certificate(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("-----BEGIN PRIVATE KEY-----")
    profile = Profile(settings={"ca_file": str(tmp_path / "ca.pem")})
    with pytest.raises(ConfigError, match="contains no certificate in PEM"):
        authorities(profile, configuration(tmp_path))
