"""``%submarine data`` in a real kernel: a variable becomes a dataset that a job reads."""

from __future__ import annotations

import pytest

from tests.notebook.conftest import Notebook

READ = """%%submarine --only
import os
import pandas
path = os.environ["SUBMARINE_INPUT_TRAIN"]
total = int(pandas.read_parquet(path)["n"].sum())
"""


def test_a_frame_of_the_notebook_is_put_shown_and_read(notebook: Notebook) -> None:
    pytest.importorskip("pyarrow")
    notebook.good("import pandas\nframe = pandas.DataFrame({'n': range(5), 's': ['<b>x</b>'] * 5})")
    put = notebook.good("%submarine data put numbers frame")
    shown = notebook.good("%submarine data show numbers")
    for ran in (put, shown):
        html = ran.displays[-1]["data"]["text/html"]
        assert "&lt;b&gt;x&lt;/b&gt;" in html
        assert "<b>x" not in html
        assert "n: int64" in html
    again = notebook.good("%submarine data put numbers frame")
    assert "had this content already" in again.displays[-1]["data"]["text/plain"]
    assert "numbers" in notebook.good("%submarine data list").displays[-1]["data"]["text/html"]
    notebook.good(READ)
    notebook.good("job = %submarine run demo --input TRAIN=data:numbers --return total --wait")
    assert notebook.good("job.result['total']").result == {"text/plain": "10"}
    gone = notebook.good("%submarine data rm numbers")
    assert "numbers is removed" in gone.stdout
    assert "neither a variable nor a file" in notebook.run(
        "%submarine data put a nothing"
    ).stderr + (notebook.run("%submarine data put a nothing").evalue)
