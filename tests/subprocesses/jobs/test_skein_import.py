"""skein is imported where there is no distutils, and brings no setuptools along."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT_DISTUTILS = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("distutils", "setuptools", "_distutils_hack"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from submarine_runtime.yarn import import_skein
skein = import_skein()
assert import_skein() is skein is sys.modules["skein"]
assert not {"distutils", "distutils.version", "setuptools"} & sys.modules.keys()
# The call that compares the version.
with skein.utils.grpc_fork_support_disabled():
    pass
security = skein.Security.new_credentials()
assert security._get_bytes("cert").startswith(b"-----BEGIN CERTIFICATE")
"""
BESIDE_SETUPTOOLS = """
import sys
before = list(sys.meta_path)
from submarine_runtime.yarn import import_skein
import_skein()
assert sys.meta_path == before
assert "setuptools" not in sys.modules and "pkg_resources" not in sys.modules
# Later imports find the distutils of setuptools: setuptools warns where it is second.
import setuptools, distutils, distutils.version
assert "setuptools" in distutils.__file__ and "setuptools" in distutils.version.__file__
"""
AFTER_DISTUTILS = """
import setuptools, distutils.version, sys
before = sys.modules["distutils.version"]
from submarine_runtime.yarn import import_skein
assert import_skein().utils.LooseVersion is before.LooseVersion
assert sys.modules["distutils.version"] is before
"""


def run(program: str) -> None:
    command = [sys.executable, "-W", "error::UserWarning", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_skein_needs_no_distutils() -> None:
    run(WITHOUT_DISTUTILS)


def test_skein_does_not_bring_setuptools_along() -> None:
    pytest.importorskip("setuptools")
    run(BESIDE_SETUPTOOLS)


def test_a_loaded_distutils_stays() -> None:
    pytest.importorskip("setuptools")
    run(AFTER_DISTUTILS)
