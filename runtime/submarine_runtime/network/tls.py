"""TLS with the job's own certificate, for the ports of agents and coordinators."""

from __future__ import annotations

import os
import ssl
from typing import Mapping


def server_context(secret: Mapping[str, str]) -> ssl.SSLContext:
    """Return a context with the certificate of ``secret.json``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # load_cert_chain needs a file name; a memory file keeps the key off the disk.
    descriptor = os.memfd_create("certificate")
    try:
        os.write(descriptor, (secret["certificate"] + "\n" + secret["key"]).encode())
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
    return context
