from .backend_under_test import (
    BackendUnderTest as BackendUnderTest,
    processes_of as processes_of,
)
