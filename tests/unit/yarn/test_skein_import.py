"""The replacement of distutils.version.LooseVersion for skein."""

from __future__ import annotations

import pytest

from submarine_runtime.yarn.skein_import import LooseVersion


@pytest.mark.parametrize("older", ["1.9.1", "1.17.99", "1.17", "0.18.0", "1"])
def test_an_older_version_is_less(older: str) -> None:
    assert LooseVersion(older) < "1.18.0"


@pytest.mark.parametrize("other", ["1.18.0", "1.18.0rc1", "1.66.2", "1.100.0", "2.0", "10.0.0"])
def test_an_equal_or_newer_version_is_not_less(other: str) -> None:
    assert not LooseVersion(other) < "1.18.0"
