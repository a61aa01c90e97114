"""``%%submarine predict`` in a real kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebook.conftest import Notebook

TRAINS = "%%submarine --only\nraise SystemExit('the training is not part of a prediction')"
HELPS = "%%submarine --only --file helping.py\ndef double(x):\n    return 2 * x"


@pytest.mark.full
def test_the_functions_of_a_cell_are_applied(notebook: Notebook, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    parquet.write_table(arrow.table({"x": [1, 2, 3]}), tmp_path / "in.parquet")
    notebook.good(TRAINS)
    notebook.good(HELPS)
    where = f"--input x={tmp_path}/in.parquet --output {tmp_path}"
    functions = "from helping import double\n\ndef predict(batch):\n    return double(batch['x'])"
    notebook.good(f"%%submarine predict {where}/out --memory 256M --wait\n{functions}")
    assert parquet.read_table(tmp_path / "out").to_pydict() == {
        "x": [1, 2, 3],
        "prediction": [2, 4, 6],
    }
    # A collected file of the functions, and no cell.
    notebook.good(f"%%submarine --only --file predict.py\n{functions}")
    notebook.good(f"job = %submarine predict {where}/more --memory 256M --wait")
    shown = notebook.good("job.result['predictions']['rows']").result
    assert shown == {"text/plain": "3"}
    failed = notebook.run(
        f"%%submarine predict {where}/failed --memory 256M --wait\n"
        "def predict(batch):\n    return 1 / 0"
    )
    page = str(failed.displays) + failed.stdout + failed.evalue + failed.traceback
    assert "predict raised ZeroDivisionError for part-00000.parquet" in page
    assert "1 / 0" in page
