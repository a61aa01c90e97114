"""Sentences for the texts of NodeManagers on images that do not run."""

from __future__ import annotations

import pytest

from submarine_runtime.coordinator.placement.image_failure import image_failure

_LAUNCH = "Exception from container-launch.\nExit code: {code}\nShell error output: {text}\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            _LAUNCH.format(code=7, text="Unable to find image 'tf:2' locally"),
            "The image tf:2 does not exist, or the node cannot pull it",
        ),
        (
            _LAUNCH.format(code=127, text="Disable mount volume for untrusted image"),
            "The image tf:2 is of a registry that the node does not trust",
        ),
        (
            _LAUNCH.format(code=7, text='docker: exec: "bash": executable file not found in $PATH'),
            "The image tf:2 has no bash",
        ),
        ("Container exited with a non-zero exit code 127.", "The image tf:2 has no python3"),
        (_LAUNCH.format(code=29, text="Feature docker is disabled"), "The node runs no Docker"),
        ("ContainerExecutionException: Requested runtime not allowed.", "The node runs no Docker"),
        (
            _LAUNCH.format(code=-1, text="Disallowed network:  lab"),
            "The node does not allow the network",
        ),
        (
            _LAUNCH.format(code=7, text="docker: Error response from daemon: no space left."),
            "The node did not run the image tf:2: no space left.",
        ),
    ],
)
def test_text_of_the_node_becomes_a_sentence(text: str, sentence: str) -> None:
    assert image_failure("tf:2", text).startswith(sentence)


@pytest.mark.parametrize("text", ["", "Container killed on request. Exit code is 143"])
def test_other_endings_are_no_failure_of_the_image(text: str) -> None:
    assert image_failure("tf:2", text) == ""
