"""``submarine doctor``: independent checks of this machine and the cluster, each with its fix.

Looks and never repairs. A check knows nothing of the others; ``runner`` gives each its time limit.
"""

from __future__ import annotations

from submarine_jobs.doctor.result import Check, Result, Status
from submarine_jobs.doctor.runner import examine

__all__ = ["Check", "Result", "Status", "examine"]
