"""Print the CUDA versions of the installed frameworks and of the driver, as one line of JSON.

The job's Python (3.8 or newer) runs this script. It imports no framework, but reads the version
from the build file of the installed package.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import re

BUILD_FILES = {
    "tensorflow": os.path.join("python", "platform", "build_info.py"),
    "torch": "version.py",
}
_CUDA = re.compile(
    r"""\bcuda(?:_version)?["']?\s*(?:,|=|:[^=\n]*=|:)\s*["'](\d{1,4}(?:\.\d{1,4})*)["']"""
)


def cuda_in(text: str) -> str | None:
    """Return the CUDA version in the text of a build file; None: built without CUDA."""
    match = _CUDA.search(text)
    return match.group(1) if match else None


def frameworks() -> dict[str, str | None]:
    """Return installed framework -> CUDA version of its build; None: built without CUDA."""
    found: dict[str, str | None] = {}
    for name, part in BUILD_FILES.items():
        spec = importlib.util.find_spec(name)
        directories = list(spec.submodule_search_locations or []) if spec is not None else []
        if directories:
            try:
                with open(os.path.join(directories[0], part), encoding="utf-8") as handle:
                    found[name] = cuda_in(handle.read(1 << 20))
            except OSError:
                found[name] = None
    if importlib.util.find_spec("jax") is not None:
        for major in ("13", "12", "11"):
            if importlib.util.find_spec(f"jax_cuda{major}_plugin") is not None:
                found["jax"] = major
                break
    return found


def driver() -> str | None:
    """Return the newest CUDA version that the NVIDIA driver supports; None: no driver."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
        number = ctypes.c_int()
        if library.cuDriverGetVersion(ctypes.byref(number)) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return f"{number.value // 1000}.{number.value % 1000 // 10}"


if __name__ == "__main__":
    print(json.dumps({"frameworks": frameworks(), "driver": driver()}))
