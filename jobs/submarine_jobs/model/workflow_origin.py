"""Where a job comes from when no person typed it: the workflow, its run and its node.

Read from the environment, which a workflow's scheduler (Azkaban, Airflow, cron, our own runner)
sets for each node's command. Holds no secret. Does not know what a workflow is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

WORKFLOW = "SUBMARINE_WORKFLOW"
RUN = "SUBMARINE_WORKFLOW_RUN"
NODE = "SUBMARINE_WORKFLOW_NODE"
TAGS = "SUBMARINE_YARN_TAGS"

_MAX_WORD = 200
#: Azkaban's own tags have a colon in them; YARN takes any text of ASCII.
_TAG = re.compile(r"[\x21-\x2b\x2d-\x7e]{1,100}")


def of_a_node() -> bool:
    """Whether this process is the command of a workflow's node."""
    return bool(os.environ.get(NODE, "").strip())


@dataclass(frozen=True)
class Origin:
    """Workflow, run and node that a job is started from; empty words where there is none.

    Attributes
    ----------
    yarn_tags
        Further tags of its YARN application, ``azkaban.flow.execid:17``, by which a scheduler
        finds and kills it.
    """

    workflow: str = ""
    run: str = ""
    node: str = ""
    yarn_tags: tuple[str, ...] = ()

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Origin:
        """What the environment says; words that make no sense there are left out."""
        env = os.environ if environ is None else environ
        tags = [word.strip() for word in env.get(TAGS, "").split(",")]
        workflow, run, node = (env.get(n, "").strip()[:_MAX_WORD] for n in (WORKFLOW, RUN, NODE))
        return cls(workflow, run, node, tuple(tag for tag in tags if _TAG.fullmatch(tag)))

    def to_environment(self) -> dict[str, str]:
        """The variables that say it."""
        said = {WORKFLOW: self.workflow, RUN: self.run, NODE: self.node}
        return {**said, TAGS: ",".join(self.yarn_tags)}
