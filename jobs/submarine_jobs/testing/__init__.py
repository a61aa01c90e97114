"""The contract test suite of backends, as a plugin for pytest.

Only for tests: the plugin imports pytest, which this project does not install.
"""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
