"""The certificate authorities of a cluster: a PEM file of the profile, or Hadoop's truststore."""

from __future__ import annotations

import base64
import struct
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

from submarine_jobs.backends.yarn.cluster.hadoop_configuration import HadoopConf, read_properties
from submarine_jobs.errors import ConfigError
from submarine_jobs.model import Profile
from submarine_runtime.translation import _

_SSL_CLIENT = "ssl-client.xml"
_TRUSTSTORE = "ssl.client.truststore"
_MAX_FILE = 1 << 20
_JKS_MAGIC = 0xFEEDFEED
_JKS_CERTIFICATE = 2


def authorities(profile: Profile, conf: HadoopConf) -> str:
    """Return the certificates in PEM; empty: those of the system apply.

    Raises
    ------
    ConfigError
        If a file that the configuration names has no certificates.
    """
    named = profile.settings.get("ca_file")
    if named:
        path = Path(named).expanduser()
        text = _content(path, _("the setting ca_file")).decode("ascii", "replace")
        if "-----BEGIN CERTIFICATE-----" not in text:
            raise ConfigError(
                _("{path} (the setting ca_file) contains no certificate in PEM.").format(path=path),
                _("A PEM certificate begins with -----BEGIN CERTIFICATE-----."),
            )
        return text
    client = conf.directory / conf.get("hadoop.ssl.client.conf", _SSL_CLIENT)
    properties = read_properties(client)
    location = properties.get(f"{_TRUSTSTORE}.location", "").strip()
    if not location:
        return ""
    data = _content(Path(location), client)
    try:
        certificates = _certificates(data, properties.get(f"{_TRUSTSTORE}.password", ""))
    except (ValueError, struct.error, IndexError) as exc:
        raise ConfigError(
            _("The truststore {path} of {client} cannot be read: {error}.").format(
                path=location, client=client, error=exc
            ),
            _("Set ca_file to a file with the certificates of the cluster's authority in PEM."),
        ) from exc
    return "".join(map(_pem, certificates))


def _content(path: Path, source: object) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_FILE)
    except OSError as exc:
        raise ConfigError(
            _("{path}, named by {source}, cannot be read: {error}.").format(
                path=path, source=source, error=exc.strerror
            ),
            _("Set ca_file to a file with the certificates of the cluster's authority in PEM."),
        ) from exc


def _certificates(data: bytes, password: str) -> list[bytes]:
    """Return the certificates (DER) of a truststore of type JKS or PKCS12."""
    if data[:4] == struct.pack(">I", _JKS_MAGIC):
        return _java_certificates(data)
    store = pkcs12.load_pkcs12(data, password.encode() or None)
    return [one.certificate.public_bytes(Encoding.DER) for one in store.additional_certs]


def _java_certificates(data: bytes) -> list[bytes]:
    """Return the trusted certificates of a JKS file; the password protects only private keys."""
    at = 0

    def number(form: str) -> int:
        nonlocal at
        at += struct.calcsize(form)
        return int(struct.unpack_from(form, data, at - struct.calcsize(form))[0])

    def take(size: int) -> bytes:
        nonlocal at
        at += size
        if at > len(data):
            raise ValueError("the file ends too early")
        return data[at - size : at]

    number(">I")  # magic
    number(">I")  # version
    found = []
    for _entry in range(number(">I")):
        kind = number(">I")
        take(number(">H"))  # alias
        number(">Q")  # date
        if kind != _JKS_CERTIFICATE:
            raise ValueError("it contains a private key, so it is a keystore")
        take(number(">H"))  # type
        found.append(take(number(">I")))
    return found


def _pem(certificate: bytes) -> str:
    text = base64.encodebytes(certificate).decode()
    return f"-----BEGIN CERTIFICATE-----\n{text}-----END CERTIFICATE-----\n"
