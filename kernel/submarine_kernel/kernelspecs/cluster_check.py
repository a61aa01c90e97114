"""What a cluster says today of a kernel that is to run on it: asked, and nothing is submitted.

A kernelspec may be written for a queue that comes tomorrow, or where no cluster is reached: what is
found here is told, and never stops anybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from submarine_jobs.errors import SubmarineError
from submarine_kernel.remote import Asked, program, session_of, spec_of_kernel

#: Seconds for an answer, at most: an install is not to wait for a cluster that is away.
PATIENCE = 6.0


@dataclass(frozen=True)
class Judgement:
    """What was found.

    Parameters
    ----------
    asked
        Whether a cluster has answered.
    words
        One sentence; empty: a container of this size and place can be had.
    """

    asked: bool
    words: str = ""


def judge(name: str, stanza: Mapping[str, Any]) -> Judgement:
    """Ask the cluster of a kernelspec whether it could ever give such a container.

    Parameters
    ----------
    name
        Of the kernelspec.
    stanza
        Its ``metadata.kernel_provisioner``.
    """
    from submarine_jobs.client import Session

    asked = Asked(name, dict((stanza.get("config") or {}).get("run") or {}))
    try:
        profile = session_of(asked).profile
        profile = replace(profile, timeout=min(profile.timeout, PATIENCE))
        spec = spec_of_kernel(profile, asked, program())
        plan = Session(profile).backend().plan(spec)
    except SubmarineError as error:
        return Judgement(False, f"No cluster was asked about it. {error}")
    return Judgement(True, " ".join(plan.errors))
