"""Keep the service's Kerberos keytab out of the environment that programs of users inherit.

Zeppelin passes properties with names in capitals as variables of the interpreter process, and
shells, kernels and local jobs inherit them. A paragraph's configuration still has the values. The
file itself is protected by its owner and mode only: code of a paragraph runs as Zeppelin's account.
"""

from __future__ import annotations

import os

KEYTAB, PRINCIPAL = "SUBMARINE_HADOOP_KEYTAB", "SUBMARINE_HADOOP_PRINCIPAL"
_VARIABLES = (KEYTAB, PRINCIPAL, "SUBMARINE_KEYTAB", "SUBMARINE_PRINCIPAL")
_hidden: dict[str, str] = {}


def hide_service_key() -> None:
    """Remove keytab and principal from the environment of this process, and keep their values."""
    _hidden.update({name: os.environ.pop(name) for name in _VARIABLES if name in os.environ})


def environment_with_key() -> dict[str, str]:
    """Return the environment with the values that were removed, to read the configuration."""
    return {**os.environ, **_hidden}
