"""skein's jar with the first page that opens the job's page."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from submarine_jobs.backends.yarn.driver import FIRST_PAGE, skein_jar, with_first_page


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
