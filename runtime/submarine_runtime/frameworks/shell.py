"""A shell command of which no program is seen: as any program, but nothing is taken for granted.

It may well start a framework whose processes work in step, so the gang restarts as a whole.
"""

from __future__ import annotations

from submarine_runtime.frameworks import generic
from submarine_runtime.frameworks.generic import environment, policy, processes

__all__ = ["PROCESSES", "RENDEZVOUS", "environment", "policy", "processes"]

PROCESSES = generic.PROCESSES
RENDEZVOUS = generic.RENDEZVOUS
