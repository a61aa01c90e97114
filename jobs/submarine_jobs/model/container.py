"""The YARN container of this process: that of a remote kernel, a notebook server or a spawner.

Several users' containers may run as one account of the node, and then have one home directory and
one default ticket cache. What belongs to a user is therefore in the directory of the container,
which the NodeManager removes at its end.
"""

from __future__ import annotations

import os
from pathlib import Path

from submarine_runtime.kerberos import TOKEN_FILE_VARIABLE

_ID, _CACHE_NAME = "CONTAINER_ID", "KRB5CCNAME"
#: Name of the file in which YARN gives a container the tokens of its application.
_TOKENS = "container_tokens"


def container_directory() -> Path | None:
    """Return the private directory of the container; None outside a container.

    None, too, where another service than YARN provides the token file of this process.
    """
    tokens = Path(os.environ.get(TOKEN_FILE_VARIABLE, ""))
    in_container = _ID in os.environ and tokens.name == _TOKENS
    return tokens.parent if in_container else None


def use_container_cache() -> None:
    """Use a ticket cache of the container in this process and its children, unless one is named."""
    directory = container_directory()
    if directory is not None and _CACHE_NAME not in os.environ:
        os.environ[_CACHE_NAME] = f"FILE:{directory / 'krb5cc'}"
