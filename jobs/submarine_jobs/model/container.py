"""The YARN container of this process: that of a remote kernel, a notebook server or a spawner.

Several users' containers may run as one account of the node, and then have one home directory and
one default ticket cache. What belongs to a user is therefore in the directory of the container,
which the NodeManager removes at its end.
"""

from __future__ import annotations

import os
from pathlib import Path

from submarine_runtime import kerberos

_ID, _CACHE_NAME = "CONTAINER_ID", "KRB5CCNAME"
#: Name of the file in which YARN gives a container the tokens of its application.
_TOKENS = "container_tokens"


def container_directory() -> Path | None:
    """Return the private directory of the container; None outside a container.

    None, too, where another service than YARN provides the token file of this process.
    """
    if _ID not in os.environ:
        return None  # Each command asks: the module with the name below is not loaded then.
    tokens = Path(os.environ.get(kerberos.TOKEN_FILE_VARIABLE, ""))
    return tokens.parent if tokens.name == _TOKENS else None


def use_container_cache() -> None:
    """Use a ticket cache of the container in this process and its children, unless one is named."""
    directory = container_directory()
    if directory is not None and _CACHE_NAME not in os.environ:
        os.environ[_CACHE_NAME] = f"FILE:{directory / 'krb5cc'}"
