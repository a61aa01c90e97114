"""Why a node did not run an image: one sentence from the text of its NodeManager.

The texts are those of YARN's Java code, of container-executor and of Docker.
"""

from __future__ import annotations

import re

from submarine_runtime.translation import _

MAX_LINE = 200
#: YARN's exception for a runtime that is not in ``allowed-runtimes``; only its log has it.
NOT_ALLOWED = "Requested runtime not allowed."
_RUNTIME = re.compile(
    r"runtime not allowed|docker (?:container )?runtime (?:is )?not (?:allowed|supported)|"
    r"feature docker is disabled|docker .*not enabled",
    re.IGNORECASE,
)
_UNTRUSTED = re.compile(r"untrusted image|image is not trusted|registry that is not", re.IGNORECASE)
_MISSING = re.compile(
    r"unable to find image|no such image|manifest unknown|manifest for .* not found|"
    r"pull access denied|repository does not exist|image not found",
    re.IGNORECASE,
)
_NO_BASH = re.compile(r'exec: "?(?:/bin/)?bash"?: .*(?:not found|no such file)', re.IGNORECASE)
_NETWORK = re.compile(
    r"disallowed network|network \S+ is not allowed|network .* not found", re.IGNORECASE
)
_NO_COMMAND = re.compile(r"exit(?:ed with a non-zero exit)? code:? 127\b", re.IGNORECASE)
#: Lines that say more than that Docker failed.
_LINE = re.compile(r"^(?:Shell error output: )?(?:docker: )?(?:Error response from daemon: )?(.+)$")
_TEXT = re.compile(r"Shell error output: (.+)|Error response from daemon: (.+)|is not allowed")


def image_failure(image: str, diagnostics: str) -> str:
    """Return why the image did not run; empty if the text names no failure of the image.

    Parameters
    ----------
    image
        Name of the image.
    diagnostics
        Text of the NodeManager on the container that ended.
    """
    for pattern, sentence in _sentences(image):
        if pattern.search(diagnostics):
            return sentence
    for line in diagnostics.splitlines():
        if _TEXT.search(line):
            found = _LINE.match(line.strip())
            reason = found.group(1) if found else line
            return _("The node did not run the image {image}: {reason}").format(
                image=image, reason=reason[:MAX_LINE]
            )
    return ""


def _sentences(image: str) -> list[tuple[re.Pattern[str], str]]:
    """Return the sentence for each pattern; the first that matches is the reason."""
    return [
        (
            _RUNTIME,
            _(
                "The node runs no Docker containers, so the image {image} cannot run there: leave "
                "the image out, or ask the operator to add docker to "
                "yarn.nodemanager.runtime.linux.allowed-runtimes and to enable it in "
                "container-executor.cfg."
            ).format(image=image),
        ),
        (
            _UNTRUSTED,
            _(
                "The image {image} is of a registry that the node does not trust: choose an image "
                "of a registry in docker.trusted.registries of container-executor.cfg."
            ).format(image=image),
        ),
        (
            _MISSING,
            _(
                "The image {image} does not exist, or the node cannot pull it: check its name and "
                "tag, and whether the nodes can read its registry."
            ).format(image=image),
        ),
        (
            _NO_BASH,
            _("The image {image} has no bash, which YARN starts: add bash to the image.").format(
                image=image
            ),
        ),
        (
            _NETWORK,
            _(
                "The node does not allow the network of the container: set docker_network to one "
                "of docker.allowed.networks of container-executor.cfg."
            ),
        ),
        (
            _NO_COMMAND,
            _(
                "The image {image} has no python3 for the agent: add Python 3.8 or newer to the "
                "image, or set agent_python = brought in the profile."
            ).format(image=image),
        ),
    ]
