"""The colours of states, readable on light and dark pages."""

from __future__ import annotations

from submarine_runtime.protocol.states import State

STATE_COLOURS = {
    State.SUBMITTING: "#6b7280",
    State.PENDING: "#9a6700",
    State.STARTING: "#7c5cc4",
    State.RUNNING: "#0b6bcb",
    State.RESTARTING: "#9a6700",
    State.FINISHING: "#0b7a75",
    State.SUCCEEDED: "#1a7f37",
    State.FAILED: "#c62828",
    State.CANCELLED: "#6b7280",
    State.LOST: "#9a6700",
}
