"""Samples for the tests of ``jupyter_kernel_test``, used for each Python kernel of the project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from submarine_kernel.kernelspecs import install_kernel
from tests.notebook.conftest import clean_environment


@contextmanager
def kernel_on_the_path(prefix: Path, **spec: Any) -> Iterator[None]:
    """Install a kernel into a directory that the suite, which uses names only, searches.

    Parameters
    ----------
    spec
        Arguments of ``install_kernel``.
    """
    install_kernel(prefix=str(prefix), **spec)
    variables: Mapping[str, str] = {
        **clean_environment(prefix),
        "SUBMARINE_STATE_DIR": str(prefix / "state"),
        "JUPYTER_PATH": str(prefix / "share" / "jupyter"),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.chdir(prefix)
        yield


class Samples:
    """Each ``code_...`` and ``..._samples`` enables a test of the suite."""

    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('x', file=sys.stderr)"
    completion_samples: tuple[dict[str, Any], ...] = ({"text": "zi", "matches": {"zip"}},)
    complete_code_samples: tuple[str, ...] = ("1", "print('hello')")
    incomplete_code_samples = ("print('''hello", "def f():\n  x*2")
    invalid_code_samples = ("import = 7q",)
    code_page_something = "print?"
    code_generate_error = "raise"
    code_execute_result = ({"code": "1+2+3", "result": "6"},)
    code_display_data = (
        {
            "code": "from IPython.display import HTML, display; display(HTML('<b>test</b>'))",
            "mime": "text/html",
        },
    )
    code_history_pattern = "1?2*"
    supported_history_operations = ("tail", "search")
    code_inspect_sample = "zip"
    code_clear_output = "from IPython.display import clear_output; clear_output()"
