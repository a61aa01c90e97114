"""Memory of the interpreter's process: what was freed does not stay."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading
from submarine_zeppelin.service.memory import give_back_freed_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

if sys.argv[1] == "small":
    give_back_freed_memory()
before = resident()
turn = threading.Barrier(8)

def work():
    turn.wait()  # so that each thread has an arena of its own, if it may
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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has that knob")
def test_large_buffers_of_threads_go_back() -> None:
    command = [sys.executable, "-c", PROGRAM, "small"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert int(done.stdout) < 20_000_000


NOTEBOOKS = """
import sys
from submarine_zeppelin.service.memory import load_no_grammar
load_no_grammar()
import nbformat
from nbformat import v4
nbformat.validate(v4.new_notebook(cells=[v4.new_code_cell("1")]))
try:
    nbformat.validate({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{}]})
except nbformat.ValidationError:
    print("jsonschema" in sys.modules, "lark" in sys.modules)
"""


def test_notebooks_are_read_and_checked_without_a_grammar_of_addresses() -> None:
    command = [sys.executable, "-c", NOTEBOOKS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["True", "False"]
