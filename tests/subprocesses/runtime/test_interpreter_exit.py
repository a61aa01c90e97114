"""An exit while a call of hdfs-native runs in another thread keeps the exit code of the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

#: A NameNode that accepts a connection and does not answer. CALL runs in a daemon thread. The
#: connection closes ANSWER seconds after the exit begins, and in any case while the interpreter
#: finalizes, which takes three seconds here.
PROCESS = """
import atexit, socket, sys, threading, time, types

server = socket.create_server(("127.0.0.1", 0))
port = server.getsockname()[1]
connections, connected = [], threading.Event()

def accept():
    while True:
        connections.append(server.accept()[0])
        connected.set()

def disconnect(server=server, connections=connections):
    server.shutdown(socket.SHUT_RDWR)
    for connection in connections:
        connection.shutdown(socket.SHUT_RDWR)

class Finalization:
    def __init__(self):
        self.disconnect, self.sleep = disconnect, time.sleep
    def __del__(self):
        self.disconnect()
        self.sleep(3.0)

CALL

sys.modules["late"] = types.ModuleType("late")
sys.modules["late"].finalization = Finalization()
threading.Thread(target=accept, daemon=True).start()
threading.Thread(target=call, daemon=True).start()
assert connected.wait(60)

def slow_answer():
    timer = threading.Timer(ANSWER, disconnect)
    timer.daemon = True
    timer.start()

atexit.register(slow_answer)
END
"""

UNCOUNTED = """
import hdfs_native
client = hdfs_native.Client(f"hdfs://127.0.0.1:{port}", config_dir=sys.argv[1])

def call():
    client.get_file_info("/data")
"""

STORAGE = """
from pathlib import Path
from submarine_jobs.storage.hdfs import HdfsStorage
storage = HdfsStorage(f"hdfs://127.0.0.1:{port}", conf_dir=Path(sys.argv[1]), timeout=600)

def call():
    storage.read("/data")
"""

FILES = """
from submarine_data.remote.configuration import ClientConfiguration
from submarine_data.remote.hdfs_native import HdfsNativeFileSystem
files = HdfsNativeFileSystem(ClientConfiguration(), patience=0)

def call():
    files.open(f"hdfs://127.0.0.1:{port}/data")
"""

#: Ends like the console script of ``submarine``.
COMMAND = """
from submarine_jobs import cli
cli._run = lambda argv: 7
print("last line", end="")
sys.exit(cli.main())
"""


NO_RETRY = """<configuration><property>
<name>dfs.client.failover.max.attempts</name><value>0</value>
</property></configuration>"""


def ended(conf: Path, call: str, answer: str, end: str) -> subprocess.CompletedProcess[str]:
    (conf / "core-site.xml").write_text("<configuration/>")
    (conf / "hdfs-site.xml").write_text(NO_RETRY)
    source = PROCESS.replace("CALL", call).replace("ANSWER", answer).replace("END", end)
    command = [sys.executable, "-c", source, str(conf)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python 3.14 suspends such threads")
def test_uncounted_call_aborts_the_process(tmp_path: Path) -> None:
    done = ended(tmp_path, UNCOUNTED, "600", "sys.exit(7)")
    assert (done.returncode, "exception not rethrown" in done.stderr) == (-6, True), done.stderr


@pytest.mark.parametrize("call", [STORAGE, FILES], ids=["jobs", "data"])
def test_exit_waits_for_a_running_call(tmp_path: Path, call: str) -> None:
    done = ended(tmp_path, call, "0.1", "sys.exit(7)")
    assert (done.returncode, "FATAL" in done.stderr) == (7, False), done.stderr


def test_command_keeps_its_exit_code_while_a_call_does_not_end(tmp_path: Path) -> None:
    done = ended(tmp_path, STORAGE, "600", COMMAND)
    assert (done.returncode, done.stdout, done.stderr) == (7, "last line", "")


def test_no_call_starts_while_the_interpreter_exits(tmp_path: Path) -> None:
    late = """
from submarine_runtime.interpreter_exit import native_calls
native_calls.close()
try:
    storage.read("/data")
except Exception as exc:
    print(exc)
"""
    done = ended(tmp_path, STORAGE, "0.1", late)
    assert "Python exits and starts no further call" in done.stdout, done.stderr
