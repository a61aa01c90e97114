"""An image with TensorBoard: the files of the tests' own TensorBoard in the small image."""

from __future__ import annotations

import sys
import sysconfig
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from tests.containers.conftest import Containers
from tests.containers.hadoop import IMAGE

TENSORBOARD_IMAGE = "local/tensorboard:1"
_PACKAGES = "/usr/lib/python3/dist-packages"
#: TensorBoard does without its faster loader, which the project switches off.
_LEFT_OUT = frozenset({"tensorboard-data-server"})
#: Libraries that the wheels expect of the system.
_LIBRARIES = ("libstdc++.so.6", "libgcc_s.so.1")


def python_differs(containers: Containers) -> str:
    """Return why the packages of this Python do not run in the image; empty if they do."""
    code = "import sys; print(*sys.version_info[:2])"
    found = containers.docker("run", "--rm", "--net=none", IMAGE, "python3", "-c", code).split()
    own = [str(number) for number in sys.version_info[:2]]
    return "" if found == own else f"the image has Python {found}, the tests run on {own}"


def make_image(containers: Containers) -> None:
    """Copy TensorBoard and what it requires into a container, and keep that as an image."""
    source = sysconfig.get_path("purelib")
    names = " ".join(sorted(_top_levels("tensorboard")))
    libraries = " ".join(str(_library(name)) for name in _LIBRARIES)
    containers.docker(
        "run", "--name=with-tensorboard", "--net=none", "-v", f"{source}:/packages:ro",
        "-v", "/usr/lib:/host:ro", IMAGE, "sh", "-c",
        f"mkdir -p {_PACKAGES} && cd /packages && cp -r {names} {_PACKAGES}"
        f" && cd /host && cp -L {libraries} /usr/lib",
    )  # fmt: skip
    containers.docker("commit", "with-tensorboard", TENSORBOARD_IMAGE)
    containers.docker("rm", "with-tensorboard")


def _top_levels(distribution: str) -> set[str]:
    """Return the names of files and directories of a distribution and of all that it requires."""
    found: set[str] = set()
    waiting, seen = [distribution], set(_LEFT_OUT)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        installed = metadata.distribution(name)
        tops = {Path(file).parts[0] for file in installed.files or ()}
        found |= tops - {"..", "__pycache__"}
        required = map(Requirement, installed.requires or ())
        waiting += [
            one.name.lower()
            for one in required
            if one.marker is None or one.marker.evaluate({"extra": ""})
        ]
    return found


def _library(name: str) -> Path:
    """Return the path of a library of this machine, below `/usr/lib`."""
    paths = sorted(Path("/usr/lib").glob(f"*/{name}"))
    assert paths, f"{name} is not installed"
    return paths[0].relative_to("/usr/lib")
