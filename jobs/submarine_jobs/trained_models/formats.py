"""Load a model by its format: Keras, SavedModel, PyTorch, safetensors, XGBoost, ONNX, scikit-learn.

Only the framework of the format is imported. No format is loaded that can run code, except a
pickle after a question, which names its owner.
"""

from __future__ import annotations

import builtins
import importlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any

from submarine_jobs.errors import RefusedError, SubmarineError, UsageError
from submarine_jobs.text import one_line
from submarine_jobs.trained_models.source import fetch, model_source
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle

#: Directories of loaded models; some frameworks read from them later. Removed at the end of Python.
_kept: list[tempfile.TemporaryDirectory[str]] = []
_PICKLES = (".pkl", ".pickle", ".joblib")
_MAX_HEAD = 1 << 16


def load_model(
    job: JobHandle, version: str = "", *, confirm: Callable[[str], bool] | None = None
) -> Any:
    """Fetch a saved version, or the final model, and load it with its framework.

    Parameters
    ----------
    confirm
        Asks whether to load a pickle; None: a question in the terminal or the notebook.

    Raises
    ------
    UsageError
        If there is no such version, or its format is not known.
    RefusedError
        If it is a pickle and the answer is no, or no question can be asked.
    SubmarineError
        If the package of the format is not installed.
    """
    source = model_source(job, version)
    kept = tempfile.TemporaryDirectory(prefix="submarine-model-")
    try:
        folder = fetch(source, Path(kept.name))
        found = load_directory(folder, source.name, _owner(job), confirm)
    except BaseException:
        kept.cleanup()
        raise
    _kept.append(kept)
    return found


def _owner(job: JobHandle) -> str:
    entry = job.directory.storage.stat(job.directory.path)
    return (entry.owner if entry is not None else "") or job.record().user


def load_directory(
    folder: Path, name: str, owner: str, confirm: Callable[[str], bool] | None = None
) -> Any:
    """Load the model in a directory; ``name`` and ``owner`` are those of the question."""
    for top in (folder, *sorted(item for item in folder.iterdir() if item.is_dir())):
        if (top / "saved_model.pb").is_file():
            return _load_saved_model(top)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for suffixes, load in _LOADERS:
        fitting = [path for path in files if path.name.endswith(suffixes)]
        if len(fitting) > 1:
            names = ", ".join(str(path.relative_to(folder)) for path in fitting[:5])
            raise UsageError(
                _("{name} has several models: {names}.").format(name=name, names=one_line(names)),
                _("Download it with `submarine models JOB --download VERSION` and load one."),
            )
        if fitting and (found := load(fitting[0])) is not None:
            return found
    pickles = [path for path in files if path.name.endswith(_PICKLES)]
    if len(pickles) == 1:
        return _load_pickle(pickles[0], name, owner, confirm)
    names = ", ".join(str(path.relative_to(folder)) for path in files[:5])
    raise UsageError(
        _("{name} has no model of a known format; it has: {names}.").format(
            name=name, names=one_line(names)
        ),
        _("Download it with `submarine models JOB --download VERSION`."),
    )


def _module(name: str, package: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as exc:
        raise SubmarineError(
            _("The model needs the package {package}, which is not installed.").format(
                package=package
            ),
            _("Install it in this Python: {python} -m pip install {package}").format(
                python=sys.executable, package=package
            ),
        ) from exc


def _load_saved_model(folder: Path) -> Any:
    return _module("tensorflow", "tensorflow").saved_model.load(str(folder))


def _load_keras(path: Path) -> Any:
    # Safe mode refuses layers that contain code.
    return _module("keras", "keras").saving.load_model(str(path), safe_mode=True)


def _load_torch(path: Path) -> Any:
    torch = _module("torch", "torch")
    try:
        return torch.load(str(path), map_location="cpu", weights_only=True)
    except Exception as exc:  # The classes of this refusal differ between releases.
        raise RefusedError(
            _("{path} has more than weights: {error}.").format(
                path=path.name, error=one_line(str(exc).partition("\n")[0], 200)
            ),
            _("Save model.state_dict() instead of the model."),
        ) from exc


def _load_safetensors(path: Path) -> Any:
    try:
        module = importlib.import_module("safetensors.torch")
    except ModuleNotFoundError:  # Without torch.
        module = _module("safetensors.numpy", "safetensors")
    return module.load_file(str(path))


def _load_onnx(path: Path) -> Any:
    try:
        runtime = importlib.import_module("onnxruntime")
    except ModuleNotFoundError:
        return _module("onnx", "onnx").load(str(path))
    return runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def _load_xgboost(path: Path) -> Any:
    with path.open("rb") as file:
        head = file.read(_MAX_HEAD)
    if b"learner" not in head:
        return None  # JSON of another kind.
    booster = _module("xgboost", "xgboost").Booster()
    booster.load_model(str(path))
    return booster


def _load_skops(path: Path) -> Any:
    io = _module("skops.io", "skops")
    unknown = io.get_untrusted_types(file=str(path))
    if unknown:
        raise RefusedError(
            _("{path} needs types that skops does not trust: {types}.").format(
                path=path.name, types=one_line(", ".join(unknown), 300)
            ),
            _("Download the version, check them, and load it with skops.io.load(trusted=...)."),
        )
    return io.load(str(path))


def _load_pickle(path: Path, name: str, owner: str, confirm: Callable[[str], bool] | None) -> Any:
    question = _(
        "{path} of {name} is a pickle of {owner}: loading it runs code of {owner} as you. Load it?"
    ).format(path=path.name, name=one_line(name, 120), owner=one_line(owner, 80) or "?")
    if not (confirm or _ask)(question):
        raise RefusedError(
            _("{path} of {name} is a pickle of {owner} and was not loaded.").format(
                path=path.name, name=name, owner=one_line(owner, 80) or "?"
            ),
            _("Save the model with skops.io.dump, which needs no question."),
        )
    if path.suffix == ".joblib":
        return _module("joblib", "joblib").load(str(path))
    with path.open("rb") as file:
        return _module("pickle", "pickle").load(file)


def _ask(question: str) -> bool:
    """Ask in the terminal, or in the notebook, whose kernel replaces ``input``."""
    ask = builtins.input
    if isinstance(ask, BuiltinFunctionType) and not (sys.stdin and sys.stdin.isatty()):
        return False
    try:
        return ask(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except Exception:  # No question can be asked: a headless kernel raises an error of its own.
        return False


#: Ends of file names -> how to load such a file; None as the result: it is another format.
_LOADERS: tuple[tuple[tuple[str, ...], Callable[[Path], Any]], ...] = (
    ((".keras",), _load_keras),
    ((".safetensors",), _load_safetensors),
    ((".onnx",), _load_onnx),
    ((".ubj", ".json"), _load_xgboost),
    ((".skops",), _load_skops),
    ((".pt", ".pth"), _load_torch),
)


def input_signature(model: Any) -> dict[str, dict[str, Any]]:
    """Return the inputs of a loaded model: name -> ``shape`` and ``dtype``; unknown sizes are None.

    Empty for a format without a signature, such as weights.
    """
    return {name: {"shape": shape, "dtype": dtype} for name, shape, dtype in _inputs(model)}


def _inputs(model: Any) -> Iterator[tuple[str, list[int | None] | None, str]]:
    if isinstance(model, Mapping):
        return  # Weights.
    if signatures := getattr(model, "signatures", None):  # SavedModel
        chosen = signatures.get("serving_default") or next(iter(signatures.values()))
        for name, spec in chosen.structured_input_signature[1].items():
            yield (
                name,
                spec.shape.as_list() if spec.shape.rank is not None else None,
                spec.dtype.name,
            )
    elif hasattr(model, "get_inputs"):  # onnxruntime
        for item in model.get_inputs():
            yield item.name, [n if isinstance(n, int) else None for n in item.shape], item.type
    elif hasattr(model, "graph") and hasattr(model.graph, "input"):  # onnx
        for item in model.graph.input:
            tensor = item.type.tensor_type
            sizes = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
            kind = _module("onnx", "onnx").TensorProto.DataType.Name(tensor.elem_type)
            yield item.name, sizes, kind.lower()
    elif hasattr(model, "num_features") and hasattr(model, "feature_names"):  # XGBoost
        names = model.feature_names or [f"f{number}" for number in range(model.num_features())]
        kinds = model.feature_types or ["float"] * len(names)
        for name, kind in zip(names, kinds, strict=True):
            yield str(name), [None], str(kind)
    elif hasattr(model, "n_features_in_"):  # scikit-learn
        yield "X", [None, int(model.n_features_in_)], "float"
    elif isinstance(getattr(model, "inputs", None), list):  # Keras
        for item in model.inputs:
            yield str(item.name), list(item.shape), str(item.dtype)
