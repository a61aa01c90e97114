"""Convert a workflow to JSON values and back, to store it with a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_runtime.files import replace_file
from submarine_runtime.translation import _
from submarine_workflows.model.workflow import Kind, Need, Node, Workflow


def to_json(workflow: Workflow) -> dict[str, Any]:
    """Return the workflow as JSON values."""
    found = asdict(workflow)
    found["nodes"] = [_node_to_json(node) for node in workflow.nodes]
    return found


def from_json(found: Mapping[str, Any]) -> Workflow:
    """Return the workflow from JSON values.

    Raises
    ------
    ValueError
        If the values are not a workflow.
    """
    try:
        return Workflow(**{**found, "nodes": tuple(_node(one) for one in found["nodes"])})
    except (TypeError, KeyError, AttributeError) as exc:
        raise ValueError(_("this is not a workflow: {error}").format(error=exc)) from None


def _node_to_json(node: Node) -> dict[str, Any]:
    found = {
        **asdict(node),
        "kind": node.kind.value,
        "nodes": [_node_to_json(inner) for inner in node.nodes],
    }
    del found["lines"]  # only needed for messages of the validation
    return found


def _node(found: Mapping[str, Any]) -> Node:
    changed = {
        "kind": Kind(found["kind"]),
        "depends_on": tuple(found["depends_on"]),
        "cells": tuple(found["cells"]),
        "nodes": tuple(_node(inner) for inner in found["nodes"]),
        "needs": tuple(Need(**need) for need in found["needs"]),
    }
    return Node(**{**found, **changed})


def write_workflow(path: Path, workflow: Workflow) -> None:
    """Write a workflow to a file atomically.

    Raises
    ------
    UsageError
        If the file cannot be written.
    """
    try:
        replace_file(path, json.dumps(to_json(workflow), ensure_ascii=True).encode())
    except OSError as exc:
        raise UsageError(
            _("{parent} cannot be written: {strerror}.").format(
                parent=path.parent, strerror=exc.strerror
            )
        ) from None
