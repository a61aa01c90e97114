"""Certificate authority and server certificate of a cluster with HTTPS, for loopback only."""

from __future__ import annotations

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from submarine_minicluster.hadoop.secure_config import STORE_PASSWORD
from submarine_minicluster.layout import Layout
from submarine_runtime.files import replace_file

_DAYS = 3650


def ensure_certificates(layout: Layout, host: str) -> None:
    """Create the certificates of a cluster at its first start; they are kept from then on.

    The key of the authority is not kept. The keystore is written last.
    """
    if layout.keystore.exists():
        return
    start = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    authority_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))

    def certificate(
        name: str,
        issuer: str,
        key: ec.EllipticCurvePrivateKey,
        *extensions: tuple[x509.ExtensionType, bool],
    ) -> x509.Certificate:
        def named(text: str) -> x509.Name:
            return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

        builder = (
            x509.CertificateBuilder()
            .subject_name(named(name))
            .issuer_name(named(issuer))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(start + datetime.timedelta(days=_DAYS))
        )
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        issuers = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
        for extension, critical in (*extensions, (own, False), (issuers, False)):
            builder = builder.add_extension(extension, critical)
        return builder.sign(authority_key, hashes.SHA256())

    def usage(*, signs_certificates: bool) -> x509.KeyUsage:
        return x509.KeyUsage(
            digital_signature=not signs_certificates,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=signs_certificates,
            crl_sign=signs_certificates,
            encipher_only=False,
            decipher_only=False,
        )

    title = "Submarine minicluster CA"
    authority = certificate(
        title,
        title,
        authority_key,
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (usage(signs_certificates=True), True),
    )
    addresses = [x509.DNSName(host), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    server = certificate(
        host,
        title,
        server_key,
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (usage(signs_certificates=False), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (x509.SubjectAlternativeName(addresses), False),
    )
    encryption = BestAvailableEncryption(STORE_PASSWORD.encode())
    replace_file(layout.ca, authority.public_bytes(Encoding.PEM))
    trusted = [pkcs12.PKCS12Certificate(authority, b"ca")]
    replace_file(layout.truststore, pkcs12.serialize_java_truststore(trusted, encryption))
    replace_file(
        layout.keystore,
        pkcs12.serialize_key_and_certificates(
            b"server", server_key, server, [authority], encryption
        ),
        mode=0o600,
    )
