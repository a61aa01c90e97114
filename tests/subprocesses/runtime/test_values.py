"""Tensors of the installed libraries are packed as arrays."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import submarine_runtime
from submarine_runtime.values import unpack_values


@pytest.mark.parametrize("library", ["torch", "tensorflow", "jax"])
def test_tensors_of_the_installed_library_come_back(library: str) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    # In a process of its own: TensorFlow takes memory and threads for good.
    program = (
        "import sys\nfrom submarine_runtime.values.archive import pack_values\n"
        "library, target = sys.argv[1:]\n"
        "if library == 'torch':\n    import torch\n"
        "    made = [torch.ones(2, 3, requires_grad=True), torch.ones(2, 3).to(torch.bfloat16)]\n"
        "elif library == 'jax':\n    import jax.numpy\n    made = [jax.numpy.ones((2, 3))] * 2\n"
        "else:\n    import tensorflow as tf\n"
        "    made = [tf.Variable(tf.ones((2, 3))), tf.ones((2, 3), tf.bfloat16)]\n"
        "pack_values({'x': made[0], 'y': made[1]}, target)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        target = f"{folder}/values.zip"
        words = [sys.executable, "-c", program, library, target]
        paths = str(Path(submarine_runtime.__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": paths, "TF_CPP_MIN_LOG_LEVEL": "3"}
        subprocess.run(words, check=True, timeout=300, env=environment)
        back = unpack_values(target).values
    for found in back.values():
        assert (type(found), found.dtype, found.shape) == (np.ndarray, np.dtype("f4"), (2, 3))
        assert found.sum() == 6
