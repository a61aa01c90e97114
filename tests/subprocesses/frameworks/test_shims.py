"""Shims: applied when the program imports the module, and no trace of them otherwise."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import submarine_runtime

PACKAGE = Path(submarine_runtime.__file__).parent
OLDEST = Path.home() / ".pyenv/versions/3.8.18/bin/python"
PYTHONS = [sys.executable] + ([str(OLDEST)] if OLDEST.exists() else [])
XGBOOST = "from . import collective\n"
COLLECTIVE = """
def init(**args):
    print(sorted(args.items()))
    if "bad" in args:
        raise ValueError("bad")

class CommunicatorContext:
    def __init__(self, **args):
        self.args = args

    def __enter__(self):
        init(**self.args)
        assert "dmlc_tracker_uri" in self.args, "alone"

    def __exit__(self, *error):
        print("end")
"""
LIGHTGBM = """
class Booster:
    def __init__(self, params=None, train_set=None, model_file=None):
        print(params, train_set, model_file)
        if train_set == "bad":
            raise ValueError("bad data")
"""
TRACKER = {"DMLC_TRACKER_URI": "10.0.0.1", "DMLC_TRACKER_PORT": "7", "DMLC_TASK_ID": "000001"}
MACHINES = {"LIGHTGBM_MACHINES": "a:1,b:2", "LIGHTGBM_LOCAL_LISTEN_PORT": "2"}


def run(
    place: Path,
    source: str,
    env: Mapping[str, str],
    python: str = sys.executable,
    shims: bool = True,
) -> subprocess.CompletedProcess[str]:
    program = place / "program"
    (program / "xgboost").mkdir(parents=True)
    (program / "xgboost/__init__.py").write_text(XGBOOST)
    (program / "xgboost/collective.py").write_text(COLLECTIVE)
    (program / "lightgbm.py").write_text(LIGHTGBM)
    (program / "main.py").write_text(source)
    (place / "launch/shims").mkdir(parents=True)
    shutil.copy(PACKAGE / "launcher/launch.py", place / "launch")
    for name in ("shims", "shim_lightgbm", "shim_xgboost") if shims else ():
        shutil.copy(PACKAGE / f"frameworks/shims/{name}.py", place / "launch/shims")
    return subprocess.run(
        [python, str(place / "launch/launch.py"), "main.py"],
        cwd=program,
        env={"PATH": os.environ["PATH"], **env},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            "init()",
            "[('dmlc_task_id', '000001'), ('dmlc_tracker_port', 7), "
            "('dmlc_tracker_uri', '10.0.0.1')]",
        ),
        (
            "init(dmlc_tracker_uri='x', dmlc_tracker_port=1)",
            "[('dmlc_tracker_port', 1), ('dmlc_tracker_uri', 'x')]",
        ),
        ("init(DMLC_TRACKER_URI='x')", "[('DMLC_TRACKER_URI', 'x')]"),
        ("init(dmlc_communicator='federated')", "[('dmlc_communicator', 'federated')]"),
    ],
)
def test_xgboost(tmp_path: Path, python: str, call: str, expected: str) -> None:
    source = f"from xgboost import collective\ncollective.{call}\n"
    done = run(tmp_path, source, TRACKER, python)
    assert (done.stdout, done.stderr) == (expected + "\n", "")


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [("", "[]"), ("dmlc_tracker_uri='x'", "[('dmlc_tracker_uri', 'x')]")],
)
def test_xgboost_in_a_single_task(tmp_path: Path, arguments: str, printed: str) -> None:
    source = f"import xgboost\nwith xgboost.collective.CommunicatorContext({arguments}): pass\n"
    done = run(tmp_path, source, {})
    assert (done.stdout, done.stderr) == (f"{printed}\nend\n", "")


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (
            "{'seed': 1}",
            "{'seed': 1, 'machines': 'a:1,b:2', 'num_machines': 2, 'local_listen_port': 2, "
            "'tree_learner': 'data', 'pre_partition': True}",
        ),
        ("{'workers': 'x:1'}", "{'workers': 'x:1'}"),
        ("{'tree_learner': 'serial'}", "{'tree_learner': 'serial'}"),
        (
            "{'tree_learner': 'voting', 'pre_partition': False, 'port': 9}",
            "{'tree_learner': 'voting', 'pre_partition': False, 'port': 9, "
            "'machines': 'a:1,b:2', 'num_machines': 2}",
        ),
    ],
)
def test_lightgbm(tmp_path: Path, params: str, expected: str) -> None:
    source = f"import lightgbm\nlightgbm.Booster({params}, 'rows')\n"
    done = run(tmp_path, source, MACHINES)
    assert done.stdout == f"{expected} rows None\n", done.stderr


def test_lightgbm_that_only_loads_a_model_or_runs_alone(tmp_path: Path) -> None:
    source = "import lightgbm\nlightgbm.Booster(model_file='m')\n"
    assert run(tmp_path / "a", source, MACHINES).stdout == "None None m\n"
    source = "import lightgbm\nlightgbm.Booster({}, 'rows')\n"
    assert run(tmp_path / "b", source, {}).stdout == "{} rows None\n"


SOURCES = {
    "a failure inside": "import lightgbm\nlightgbm.Booster({}, 'bad')\n",
    "a failure in init": "from xgboost import collective\ncollective.init(bad=1)\n",
    "a failure while importing": "import sys\nsys.path.insert(0, BROKEN)\nimport xgboost\n",
    "no such submodule": "import lightgbm.nothing\n",
    "the module": (
        "import sys, lightgbm, xgboost, importlib.util\n"
        "print(type(lightgbm.__loader__), type(lightgbm.__spec__.loader), lightgbm.__spec__.name)\n"
        "print(lightgbm.__file__.endswith('lightgbm.py'), xgboost.__path__ is not None)\n"
        "print([type(f).__name__ for f in sys.meta_path])\n"
        "print([n for n in sys.modules if 'shim' in n or 'submarine_runtime' in n])\n"
        "import importlib\nimportlib.reload(lightgbm)\n"
    ),
    "neither": "import json\nprint(json.dumps(1))\n",
}


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", SOURCES)
def test_nothing_of_them_shows(tmp_path: Path, python: str, name: str) -> None:
    """With and without shims the program prints the same and fails with the same traceback."""
    texts = []
    for shims in (True, False):
        place = tmp_path / str(shims)
        (place / "broken/xgboost").mkdir(parents=True)
        (place / "broken/xgboost/__init__.py").write_text("def f():\n    1 / 0\n\n\nf()\n")
        source = SOURCES[name].replace("BROKEN", repr(str(place / "broken")))
        done = run(place, source, {}, python, shims)
        texts.append((done.returncode, done.stdout, done.stderr.replace(str(place), "")))
    assert texts[0] == texts[1]
    assert "launch" not in texts[0][2]
