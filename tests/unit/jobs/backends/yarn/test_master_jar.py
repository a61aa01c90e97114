"""skein's jar with the first page that opens the job's page."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.driver import (
    FIRST_PAGE,
    MASTER_CLASS,
    make_master_jar,
    skein_jar,
    with_diagnostics,
    with_first_page,
    with_gpu_resource,
)
from submarine_runtime.yarn import GPU, NVIDIA_GPU


def test_only_the_template_of_the_first_page_differs() -> None:
    jar = Path(skein_jar()).read_bytes()
    made = with_first_page(jar)
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
        assert differing == ["overview.mustache.html"]
        assert after.read("overview.mustache.html") == FIRST_PAGE


def test_the_master_passes_on_the_text_of_each_failed_container() -> None:
    """One call is replaced by a constant; real containers show that the class still loads."""
    jar = Path(skein_jar()).read_bytes()
    made = with_diagnostics(jar)
    assert len(made) == len(jar)
    with (
        zipfile.ZipFile(io.BytesIO(jar)) as before,
        zipfile.ZipFile(io.BytesIO(made)) as after,
        zipfile.ZipFile(io.BytesIO(make_master_jar(skein_jar(), GPU))) as whole,
    ):
        assert after.testzip() is None
        differing = [
            name for name in after.namelist() if after.getinfo(name).CRC != before.getinfo(name).CRC
        ]
        assert differing == [MASTER_CLASS]
        old, new = before.read(MASTER_CLASS), after.read(MASTER_CLASS)
        assert whole.read(MASTER_CLASS) == new
    assert len(new) == len(old)
    places = [place for place in range(len(old)) if old[place] != new[place]]
    # aload_3, invokevirtual and its operand; iconst_0 and nops; then ifle in both.
    assert old[places[0] : places[0] + 2] == b"\x2d\xb6"
    assert new[places[0] : places[0] + 5] == b"\x03\0\0\0\x9e"
    assert places[-1] <= places[0] + 3


def test_a_class_with_other_code_is_left_as_it_is() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as jar:
        jar.writestr(MASTER_CLASS, "x" * 100)
    with zipfile.ZipFile(io.BytesIO(with_diagnostics(buffer.getvalue()))) as made:
        assert made.read(MASTER_CLASS) == b"x" * 100


def test_a_jar_without_the_template_is_left_as_it_is() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as jar:
        jar.writestr("other.html", "x")
    for data in (buffer.getvalue(), b"no jar"):
        assert with_first_page(data) == data


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
