"""Read the configuration and the secret of an agent or coordinator from its directory."""

from __future__ import annotations

import json
import os
from typing import TypeVar

from submarine_runtime.protocol import layout
from submarine_runtime.protocol.serialization import from_json

T = TypeVar("T")


def read_configuration(cls: type[T], directory: str, name: str) -> tuple[T, dict[str, str]]:
    """Return the configuration of the file ``name``, and token, certificate and key of the job.

    Raises
    ------
    ValueError
        If a file cannot be read or is invalid; one sentence.
    """
    try:
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            config = from_json(cls, json.load(file))
        with open(os.path.join(directory, layout.SECRET), encoding="utf-8") as file:
            secret = json.load(file)
        if not all(isinstance(secret[key], str) for key in ("token", "certificate", "key")):
            raise ValueError("secret.json lacks token, certificate or key")
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise ValueError(f"cannot read the configuration in {directory}: {exc!r}") from exc
    return config, secret
