"""A shell command with an unknown program: like ``generic``, without its assumptions.

The command may start a framework with collective operations, so the gang restarts as a whole.
"""

from __future__ import annotations

from submarine_runtime.frameworks import generic
from submarine_runtime.frameworks.generic import environment, policy, processes

__all__ = ["PROCESSES", "RENDEZVOUS", "environment", "policy", "processes"]

PROCESSES = generic.PROCESSES
RENDEZVOUS = generic.RENDEZVOUS
