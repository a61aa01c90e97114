"""skein's jar with the first page that opens the job's page."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.driver import (
    FIRST_PAGE,
    make_master_jar,
    skein_jar,
    with_first_page,
    with_gpu_resource,
    with_repaired_master,
)
from submarine_runtime.yarn import GPU, NVIDIA_GPU

MASTER = "com/anaconda/skein/ApplicationMaster.class"
#: Constants of a class file: type, length, text.
LAST_KEY, FIRST_KEY = b"\x01\x00\x07lastKey", b"\x01\x00\x08firstKey"


def test_only_the_template_and_the_master_class_differ() -> None:
    jar = Path(skein_jar()).read_bytes()
    made = make_master_jar(skein_jar(), GPU)
    # The size is known before the jar is made.
    assert len(made) == len(jar)
    with (
        zipfile.ZipFile(io.BytesIO(jar)) as before,
        zipfile.ZipFile(io.BytesIO(made)) as after,
    ):
        assert after.namelist() == before.namelist()
        assert after.testzip() is None
        differing = [
            name for name in after.namelist() if after.getinfo(name).CRC != before.getinfo(name).CRC
        ]
        assert sorted(differing) == [MASTER, "overview.mustache.html"]
        assert after.read("overview.mustache.html") == FIRST_PAGE
        was, code = before.read(MASTER), after.read(MASTER)
        # One method has another name, and eight bytes of code are no operation: constant, variable,
        # jump.
        assert was.count(LAST_KEY) == 1
        was = was.replace(LAST_KEY, FIRST_KEY)
        changed = [index for index in range(len(code)) if code[index] != was[index]]
        assert len(code) == len(was)
        assert was[changed[0]] == 0x13
        assert code[changed[0] : changed[0] + 8] == bytes(8)
        assert changed[-1] - changed[0] == 7


def test_a_jar_without_the_template_is_left_as_it_is() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as jar:
        jar.writestr("other.html", "x")
    for data in (buffer.getvalue(), b"no jar"):
        assert with_first_page(data) == data
        assert with_repaired_master(data) == data


def test_a_master_with_other_code_is_left_as_it_is() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as jar:
        jar.writestr(MASTER, bytes(1000))
    assert with_repaired_master(buffer.getvalue()) == buffer.getvalue()


def test_a_template_that_is_too_small_is_left_as_it_is() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as jar:
        jar.writestr("overview.mustache.html", "x")
    assert with_first_page(buffer.getvalue()) == buffer.getvalue()


def test_gpus_are_requested_by_the_name_of_the_cluster() -> None:
    name = "com/anaconda/skein/MsgUtils.class"
    with (
        zipfile.ZipFile(skein_jar()) as before,
        zipfile.ZipFile(io.BytesIO(make_master_jar(skein_jar(), NVIDIA_GPU))) as after,
    ):
        assert sorted(after.namelist()) == sorted(before.namelist())
        assert after.testzip() is None
        code = after.read(name)
        # Constants of the table have their length before them.
        assert b"\x01\x00\x0envidia.com/gpu" in code
        assert b"yarn.io/gpu" not in code
        assert len(code) == len(before.read(name)) + len("nvidia.com/gpu") - len("yarn.io/gpu")
        assert after.read("overview.mustache.html") == FIRST_PAGE


def test_a_class_without_the_constant_is_refused() -> None:
    with pytest.raises(ValueError, match=r"does not name yarn\.io/gpu once"):
        with_gpu_resource(b"no class", NVIDIA_GPU)
