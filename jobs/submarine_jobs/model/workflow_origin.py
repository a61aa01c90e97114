"""Workflow, run and node that started a job, read from environment variables.

The scheduler of the workflow (Azkaban, Airflow, cron, the workflow runner) sets the variables for
the command of each node. They contain no secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

WORKFLOW_VARIABLE = "SUBMARINE_WORKFLOW"
RUN_VARIABLE = "SUBMARINE_WORKFLOW_RUN"
NODE_VARIABLE = "SUBMARINE_WORKFLOW_NODE"
TAGS_VARIABLE = "SUBMARINE_YARN_TAGS"

_MAX_WORD = 200
#: Tags of Azkaban contain a colon; YARN accepts any ASCII text.
_TAG = re.compile(r"[\x21-\x2b\x2d-\x7e]{1,100}")


def in_workflow_node() -> bool:
    """Whether this process is the command of a workflow node."""
    return bool(os.environ.get(NODE_VARIABLE, "").strip())


@dataclass(frozen=True)
class WorkflowOrigin:
    """Workflow, run and node that started a job; empty strings if there are none.

    Attributes
    ----------
    yarn_tags
        Additional tags of the YARN application, such as ``azkaban.flow.execid:17``, by which a
        scheduler finds and kills it.
    """

    workflow: str = ""
    run: str = ""
    node: str = ""
    yarn_tags: tuple[str, ...] = ()

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> WorkflowOrigin:
        """Read the variables; invalid tags are ignored."""
        env = os.environ if environ is None else environ
        tags = [word.strip() for word in env.get(TAGS_VARIABLE, "").split(",")]
        workflow, run, node = (
            env.get(n, "").strip()[:_MAX_WORD]
            for n in (WORKFLOW_VARIABLE, RUN_VARIABLE, NODE_VARIABLE)
        )
        return cls(workflow, run, node, tuple(tag for tag in tags if _TAG.fullmatch(tag)))

    def to_environment(self) -> dict[str, str]:
        """Return the environment variables of this origin."""
        variables = {
            WORKFLOW_VARIABLE: self.workflow,
            RUN_VARIABLE: self.run,
            NODE_VARIABLE: self.node,
        }
        return {**variables, TAGS_VARIABLE: ",".join(self.yarn_tags)}
