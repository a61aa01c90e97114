"""A kernel in a container keeps to Jupyter's messaging protocol: ``jupyter_kernel_test``."""

from __future__ import annotations

import pytest
from jupyter_kernel_test import KernelTests

from submarine_kernel.install import install_kernel
from submarine_kernel.remote.kernelspec import provisioning
from tests.notebook.conftest import clean_environment


@pytest.fixture(scope="class", autouse=True)
def _kernel_on_the_path(tmp_path_factory: pytest.TempPathFactory) -> object:
    """The suite finds the kernel by its name."""
    prefix = tmp_path_factory.mktemp("remote-protocol")
    stanza = provisioning("far", {"backend": "local", "memory": "500M"})
    install_kernel(name="far", prefix=str(prefix), container=stanza)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in clean_environment(prefix).items():
            patch.setenv(name, value)
        patch.setenv("SUBMARINE_STATE_DIR", str(prefix / "state"))
        patch.setenv("JUPYTER_PATH", str(prefix / "share" / "jupyter"))
        patch.chdir(prefix)
        yield


class TestRemoteProtocol(KernelTests):
    """Each ``code_...`` and ``..._samples`` gives the suite something to do."""

    kernel_name = "far"
    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('x', file=sys.stderr)"
    completion_samples = [{"text": "zi", "matches": {"zip"}}]
    complete_code_samples = ["1", "print('hello')"]
    incomplete_code_samples = ["print('''hello", "def f():\n  x*2"]
    invalid_code_samples = ["import = 7q"]
    code_page_something = "print?"
    code_generate_error = "raise"
    code_execute_result = [{"code": "1+2+3", "result": "6"}]
    code_display_data = [
        {
            "code": "from IPython.display import HTML, display; display(HTML('<b>test</b>'))",
            "mime": "text/html",
        }
    ]
    code_history_pattern = "1?2*"
    supported_history_operations = ("tail", "search")
    code_inspect_sample = "zip"
    code_clear_output = "from IPython.display import clear_output; clear_output()"


del KernelTests  # else it would be collected as well
