"""Memory of the interpreter process: malloc settings and unused imports."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading
from submarine_zeppelin.memory import limit_retained_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

if sys.argv[1] == "small":
    limit_retained_memory()
before = resident()
turn = threading.Barrier(8)

def work():
    turn.wait()  # so that threads use different arenas if possible
    for _ in range(3):
        held = [bytes(10_000_000)]
        small = [bytes(1000) for _ in range(5000)]
        del held, small
    turn.wait()

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")
def test_freed_buffers_of_threads_are_returned() -> None:
    command = [sys.executable, "-c", PROGRAM, "small"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert int(done.stdout) < 20_000_000


FRAGMENTED = """
from submarine_zeppelin.memory import limit_retained_memory, release_freed_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

limit_retained_memory()
before = resident()
held = [bytes(2000) for _ in range(20_000)]
del held[:-1]  # the last one keeps the heap long
retained = resident() - before
release_freed_memory()
print(retained, resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has this function")
def test_freed_memory_between_objects_is_returned() -> None:
    command = [sys.executable, "-c", FRAGMENTED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    retained, left = (int(word) for word in done.stdout.split())
    assert retained > 30_000_000
    assert left < 5_000_000


NOTEBOOKS = """
import sys
from submarine_zeppelin.memory import block_unused_imports
block_unused_imports()
import nbformat
from nbformat import v4
nbformat.validate(v4.new_notebook(cells=[v4.new_code_cell("1")]))
try:
    nbformat.validate({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{}]})
except nbformat.ValidationError:
    print("jsonschema" in sys.modules, "lark" in sys.modules)
"""


def test_notebooks_are_validated_without_the_unused_grammar() -> None:
    command = [sys.executable, "-c", NOTEBOOKS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["True", "False"]
