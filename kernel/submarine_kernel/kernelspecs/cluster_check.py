"""Check whether the cluster can provide the container of a kernel, without a submission.

The result is a warning, not an error: a kernelspec may name a queue that does not exist yet, or be
written on a machine that does not reach the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from submarine_jobs.client import Session
from submarine_jobs.errors import SubmarineError
from submarine_kernel.remote import KernelRequest, program, session_of, spec_of_kernel
from submarine_runtime.translation import _

#: Seconds to wait for an answer: an installation must not block on an unreachable cluster.
TIMEOUT = 6.0


@dataclass(frozen=True)
class ClusterCheck:
    """The result of a check.

    Parameters
    ----------
    answered
        Whether a cluster has answered.
    problem
        One sentence; empty if the cluster can provide such a container.
    """

    answered: bool
    problem: str = ""


def check_container(name: str, stanza: Mapping[str, Any]) -> ClusterCheck:
    """Check the container that a kernelspec requests.

    Parameters
    ----------
    name
        Name of the kernelspec.
    stanza
        Its ``metadata.kernel_provisioner``.
    """
    request = KernelRequest(name, dict((stanza.get("config") or {}).get("run") or {}))
    try:
        profile = session_of(request).profile
        profile = replace(profile, timeout=min(profile.timeout, TIMEOUT))
        spec = spec_of_kernel(profile, request, program())
        plan = Session(profile).backend().plan(spec)
    except SubmarineError as error:
        return ClusterCheck(False, _("No cluster could check it. {error}").format(error=error))
    return ClusterCheck(True, " ".join(plan.errors))
