"""Load models of each format; packages that are not in .venv are in an environment of set-up."""

from __future__ import annotations

import builtins
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from submarine_jobs.client import Session
from submarine_jobs.commands.grammar import execute
from submarine_jobs.errors import RefusedError, SubmarineError, UsageError
from submarine_jobs.model import Profile
from submarine_jobs.trained_models import input_signature, load_directory
from tests.frontends import RecordingFrontend
from tests.submission import submitting

ROOT = Path(__file__).resolve().parents[3]
FORMATS = ROOT / ".venv-formats/bin/python"

TRAIN = """
import os
import numpy as np
import keras

model = keras.Sequential([keras.layers.Input((4,), name="pixels"), keras.layers.Dense(2)])
model.layers[0].set_weights([np.array([[1.0, 2.0]] * 4), np.array([0.5, 0.0])])
folder = os.environ["SUBMARINE_MODEL_DIR"]
if FORMAT == "keras":
    model.save(folder + "/digits.keras")
else:
    model.export(folder)
"""


@pytest.mark.full
@pytest.mark.parametrize("format", ["keras", "savedmodel"])
def test_keras_and_savedmodel_of_a_job(tmp_path: Path, format: str) -> None:
    """The SavedModel also as TensorFlow Serving loads it, from the directory of its version."""
    import numpy as np
    import tensorflow as tf  # type: ignore[import-untyped]

    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    with submitting(session) as submit:
        job = submit(TRAIN.replace("FORMAT", repr(format)), memory=2048)
        job.wait_success(300)
    job.save_model("best")
    model = job.load_model("best")
    rows = np.ones((3, 4), "float32")
    expected = np.array([[4.5, 8.0]] * 3, "float32")
    signature = input_signature(model)
    assert [entry["shape"] for entry in signature.values()] == [[None, 4]]
    assert [entry["dtype"] for entry in signature.values()] == ["float32"]
    if format == "keras":
        assert np.allclose(model.predict(rows, verbose=0), expected)
        return
    assert np.allclose(model.serve(rows), expected)
    target = tmp_path / "served/digits/7"
    words = ["publish", f"{job.id}@best", "--to", str(target), "--alias", "prod"]
    execute(words, RecordingFrontend(session=session))
    # The layout that the server polls: numeric directories with saved_model.pb; others are ignored.
    assert [item.name for item in target.parent.iterdir() if item.name.isdigit()] == ["7"]
    assert (target / "saved_model.pb").is_file()
    assert tf.saved_model.contains_saved_model(str(target))
    served = tf.saved_model.load(str(target), tags={"serve"}).signatures["serving_default"]
    name = next(iter(signature))
    found = next(iter(served(**{name: tf.constant(rows)}).values()))
    assert np.allclose(found, expected)


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (print, ("the pickle has run",))


def test_a_pickle_is_loaded_after_a_question_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Evil()))
    questions: list[str] = []

    def answer(question: str) -> bool:
        questions.append(question)
        return len(questions) > 1

    sentence = r"model\.pkl of digits@best is a pickle of ada and was not loaded"
    with pytest.raises(RefusedError, match=sentence):
        load_directory(tmp_path, "digits@best", "ada", answer)
    assert capsys.readouterr().out == ""
    load_directory(tmp_path, "digits@best", "ada", answer)
    assert "runs code of ada as you" in questions[0]
    assert capsys.readouterr().out == "the pickle has run\n"
    # Without a terminal and a notebook, no question can be asked.
    with pytest.raises(RefusedError, match="was not loaded"):
        load_directory(tmp_path, "digits@best", "ada")
    asked = []
    monkeypatch.setattr(builtins, "input", lambda text: asked.append(text) or "n")
    with pytest.raises(RefusedError, match="was not loaded"):
        load_directory(tmp_path, "digits@best", "ada")
    assert len(asked) == 1
    assert capsys.readouterr().out == ""


def test_what_cannot_be_loaded_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weights.npz").write_bytes(b"")
    with pytest.raises(UsageError, match=r"no model of a known format; it has: weights\.npz"):
        load_directory(tmp_path, "digits", "ada")
    for name in ("a.onnx", "b.onnx"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(UsageError, match=r"several models: a\.onnx, b\.onnx"):
        load_directory(tmp_path, "digits", "ada")
    (tmp_path / "a.onnx").unlink()
    for package in ("onnx", "onnxruntime"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SubmarineError, match="needs the package onnx, which is not installed"):
        load_directory(tmp_path, "digits", "ada")


#: Each writes a model to the directory `folder`, loads it with `load()` and checks it.
PROGRAMS = {
    "safetensors": """
import numpy as np
from safetensors.numpy import save_file
save_file({"w": np.arange(6, dtype="float32").reshape(2, 3)}, folder / "model.safetensors")
model = load()
assert model["w"].shape == (2, 3) and float(model["w"][1, 2]) == 5.0
assert input_signature(model) == {}
""",
    "xgboost": """
import numpy as np, xgboost
rows = np.random.default_rng(1).random((50, 3))
data = xgboost.DMatrix(rows, rows[:, 0], feature_names=list("abc"))
trained = xgboost.train({"max_depth": 2}, data, 3)
trained.save_model(folder / "model.ubj")
model = load()
same = xgboost.DMatrix(rows, feature_names=list("abc"))
assert np.array_equal(model.predict(same), trained.predict(same))
assert list(input_signature(model)) == ["a", "b", "c"]
""",
    "onnx": """
import onnx
from onnx import TensorProto, helper
x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])
graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
onnx.save(helper.make_model(graph), folder / "model.onnx")
model = load()
assert model.graph.node[0].op_type == "Relu"
assert input_signature(model) == {"x": {"shape": [None, 4], "dtype": "float"}}
""",
    "skops": """
import numpy as np, skops.io
from sklearn.linear_model import LogisticRegression
rows = np.random.default_rng(1).random((50, 3))
trained = LogisticRegression().fit(rows, rows[:, 0] > 0.5)
skops.io.dump(trained, folder / "model.skops")
model = load()
assert np.array_equal(model.predict(rows), trained.predict(rows))
assert input_signature(model)["X"]["shape"] == [None, 3]
import os
from functools import partial
skops.io.dump(partial(os.system, "true"), folder / "model.skops")
try:
    load()
except RefusedError as error:
    assert "does not trust" in str(error), error
else:
    raise AssertionError("loaded")
""",
}
PRELUDE = """
import sys, tempfile
from pathlib import Path
from submarine_jobs.errors import RefusedError
from submarine_jobs.trained_models import input_signature, load_directory
folder = Path(sys.argv[1])
def load():
    return load_directory(folder, "digits", "ada")
"""
TORCH = """
import torch
torch.save({"w": torch.ones(2, 3)}, str(folder / "model.pt"))
assert float(load()["w"].sum()) == 6.0
torch.save(torch.nn.Linear(2, 3), str(folder / "model.pt"))
try:
    load()
except RefusedError as error:
    assert "has more than weights" in str(error), error
else:
    raise AssertionError("loaded")
"""


def run(python: Path, program: str, folder: Path) -> None:
    paths = ":".join(
        [f"{ROOT}/jobs", f"{ROOT}/runtime", *(path for path in sys.path if "site-packages" in path)]
    )
    # Appended, so that the packages of that environment come first.
    source = f"import sys; sys.path += {paths.split(':')!r}\n{PRELUDE}{program}\nprint('done')"
    done = subprocess.run(
        [str(python), "-c", source, str(folder)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.stdout.endswith("done\n"), done.stderr


@pytest.mark.full
@pytest.mark.parametrize("format", PROGRAMS)
def test_formats_of_the_environment_for_formats(format: str, tmp_path: Path) -> None:
    if not FORMATS.exists():
        pytest.skip("scripts/setup.sh formats makes .venv-formats")
    run(FORMATS, PROGRAMS[format], tmp_path)


@pytest.mark.full
def test_weights_of_torch(tmp_path: Path) -> None:
    """With Debian's PyTorch, as the tests of frameworks."""
    python = Path("/usr/bin/python3")
    torch = subprocess.run([str(python), "-c", "import torch"], capture_output=True, check=False)
    if torch.returncode:
        pytest.skip("scripts/setup.sh torch installs it")
    run(python, TORCH, tmp_path)
