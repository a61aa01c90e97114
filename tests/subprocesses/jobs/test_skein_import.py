"""What comes along when skein is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
before = list(sys.meta_path)
from submarine_jobs.backends.yarn.driver.skein_calls import skein_module
assert skein_module() is skein_module() is sys.modules["skein"]
assert sys.meta_path == before
assert "setuptools" not in sys.modules and "pkg_resources" not in sys.modules
# Who comes after is served as if we had not been there: setuptools warns where it is second.
import setuptools, distutils
assert "setuptools" in distutils.__file__
"""


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="has distutils from setuptools only")
def test_skein_does_not_bring_setuptools_along() -> None:
    pytest.importorskip("setuptools")
    command = [sys.executable, "-W", "error::UserWarning", "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
