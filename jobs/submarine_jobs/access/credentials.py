"""Create the token and the certificate of a job. This module does not store them."""

from __future__ import annotations

import datetime
import json
import secrets
from dataclasses import asdict, dataclass

from submarine_jobs.concurrency import call_in_subprocess, uses_subprocesses

#: Name in the certificate; the client pins the certificate and does not check host names.
CERTIFICATE_NAME = "submarine-job"
VALID_DAYS = 400
#: Timeout of a subprocess that creates them, on a busy machine.
_SECONDS = 60.0


@dataclass(frozen=True)
class JobSecret:
    """Token and certificate of the agent of a job, and its private key (PEM)."""

    token: str
    certificate: str
    key: str

    def __repr__(self) -> str:
        return "JobSecret(...)"

    def to_bytes(self) -> bytes:
        """Return the content of ``secret.json``."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> JobSecret:
        """Read ``secret.json``."""
        raw = json.loads(data)
        return cls(raw["token"], raw["certificate"], raw["key"])


def create_secret(job_id: str) -> JobSecret:
    """Create a random token and a self-signed EC P-256 certificate for ``job_id``."""
    if uses_subprocesses():
        return JobSecret(*call_in_subprocess(_create, job_id, seconds=_SECONDS))
    return JobSecret(*_create(job_id))


def _create(job_id: str) -> tuple[str, str, str]:
    """Create token, certificate and key."""
    # cost: cryptography (0.1 s, 25 MB), which only a submission needs.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, CERTIFICATE_NAME)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # The clock of a node may be some hours slow.
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(CERTIFICATE_NAME)]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    return secrets.token_urlsafe(32), public.decode(), private.decode()
