"""A real agent as one task of a gang; the test plays its coordinator."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.access import AgentAddress, AgentClient, create_secret
from submarine_jobs.errors import ClusterError
from submarine_runtime.protocol import wire
from submarine_runtime.protocol.coordinator_config import CoordinatorConfig
from submarine_runtime.protocol.link import Member
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.spec import NamedInput
from tests.local.agent.agent_rig import OLDEST_PYTHONS, Rig
from tests.local.agent.link_rig import PlayedCoordinator
from tests.processes import is_gone
from tests.waiting import until

WAITS = "import time\nprint('up', flush=True)\ntime.sleep(60)\n"


@pytest.fixture
def boss(rig: Rig, tmp_path: Path) -> Iterator[PlayedCoordinator]:
    made = PlayedCoordinator(tmp_path, rig.secret)
    yield made
    made.close()


def join(
    rig: Rig, boss: PlayedCoordinator, program: str, task: str = "worker:0", **config: Any
) -> subprocess.Popen[bytes]:
    """An agent that has said that it is ready."""
    role, index = task.split(":")
    scratch = rig.prepare(program, name=f"{role}-{index}", role=role, **config)
    agent = rig.launch(scratch, env=boss.environment(task, f"{role}-{index}.1"))
    boss.state("ready")
    return agent


def test_a_task_runs_and_leaves(rig: Rig, boss: PlayedCoordinator) -> None:
    program = (
        "import os, json\n"
        "open(os.environ['SUBMARINE_MODEL_DIR'] + '/m', 'w').write('model')\n"
        "print(json.dumps({k: v for k, v in os.environ.items() if 'SUBMARINE' in k}))\n"
    )
    agent = join(rig, boss, program, params={"lr": 0.1, "opt-name": "adam"})
    register = boss.registered()
    assert register["task"] == "worker:0"
    assert register["seat"] == "worker-0.1"
    assert register["running"] is None
    assert len(register["ports"]) == 1
    assert register["node"] == "local"
    assert "Upgrade: submarine-link" in boss.heads[0]
    boss.start()
    running = boss.state("running", epoch=1, attempt=1)
    assert running["pid"] > 0
    ended = boss.state("ended")
    assert (ended["reason"], ended["exit_code"]) == ("succeeded", 0)
    assert ended["outputs"] == [{"path": "model/m", "size": 5}]
    boss.say("leave")
    left = boss.wait(lambda line: line["type"] == "left")
    assert left["missing"] == []
    assert rig.finish(agent) == 0
    shipped = rig.shipped("stdout")
    assert ended["logs"]["stdout"] == len(shipped)
    seen = json.loads(shipped)
    assert not [name for name in seen if name.startswith("SUBMARINE_AGENT")]
    assert seen["SUBMARINE_TASK_COUNT"] == "1"
    assert seen["SUBMARINE_PARAM_LR"] == "0.1"
    assert seen["SUBMARINE_PARAM_OPT_NAME"] == "adam"
    assert json.loads(Path(seen["SUBMARINE_PARAMS"]).read_text()) == {"lr": 0.1, "opt-name": "adam"}
    assert (rig.job_dir / "model/m").read_text() == "model"
    written = {path.name for path in rig.job_dir.iterdir()}
    assert not written & {"claim.json", "live.json", "record.json", "events"}


def test_another_attempt_in_the_same_container(rig: Rig, boss: PlayedCoordinator) -> None:
    program = (
        "import os, sys\nfrom pathlib import Path\n"
        "kept = Path(os.environ['SUBMARINE_CHECKPOINT_DIR'], 'step')\n"
        "print('attempt', os.environ['SUBMARINE_ATTEMPT'], kept.exists())\n"
        "kept.write_text('1')\n"
        "sys.exit(3 if os.environ['SUBMARINE_ATTEMPT'] == '1' else 0)\n"
    )
    agent = join(rig, boss, program)
    boss.start()
    first = boss.state("ended", epoch=1, attempt=1)
    assert (first["reason"], first["exit_code"], first["retry"]) == ("program_error", 3, "yes")
    boss.start(attempt=2, restore={"own": 1, "part": None})
    assert boss.state("ended", epoch=1, attempt=2)["reason"] == "succeeded"
    boss.start(attempt=2, restore={"own": 1, "part": None})  # told twice, started once
    boss.say("leave")
    assert rig.finish(agent) == 0
    logs = {
        path.parent.name: path.read_text() for path in rig.job_dir.glob("logs/worker-0/*/stdout.0*")
    }
    assert logs == {"e1-a1": "attempt 1 False\n", "e1-a2": "attempt 2 True\n"}
    assert [line["state"] for line in boss.lines if line["type"] == "state"].count("running") == 2


def test_told_to_stop_and_to_go(rig: Rig, boss: PlayedCoordinator) -> None:
    program = (
        "import os, time\nfrom pathlib import Path\n"
        "Path(os.environ['SUBMARINE_TENSORBOARD_DIR'], 'events').write_text('x')\n" + WAITS
    )
    gang = (
        Member("chief:0", "chief", 0, "h", "10.0.0.1", (1,)),
        Member("ps:0", "ps", 0, "h", "127.0.0.1", (2,), kind="untracked"),
    )
    agent = join(rig, boss, program, "ps:0")
    boss.start(*gang)
    boss.state("running")
    until(lambda: b"up" in (rig.scratch("ps-0") / "ps-0.stdout.log").read_bytes())
    began = time.monotonic()
    boss.say("stop", why="the job has ended", grace=300.0)
    ended = boss.state("ended")
    assert time.monotonic() - began < 60, "it waited for the whole grace"
    assert (ended["reason"], ended["detail"]) == ("cancelled", "the job has ended")
    assert ended["signal"] == signal.SIGTERM
    boss.say("leave")
    left = boss.wait(lambda line: line["type"] == "left")
    assert left["outputs"] == [{"path": "tasks/ps-0/tensorboard/events", "size": 1}]
    assert rig.finish(agent) == 0


def test_a_refused_agent_runs_nothing(rig: Rig, boss: PlayedCoordinator) -> None:
    boss.refuse = "another container has this place"
    agent = rig.launch(rig.prepare("raise SystemExit(1)"), env=boss.environment())
    assert rig.finish(agent) == 0
    assert "another container has this place" in rig.errors
    assert not (rig.scratch() / "worker-0.stdout.log").exists()


def test_the_program_never_notices_a_link_that_is_away(
    rig: Rig, boss: PlayedCoordinator, tmp_path: Path
) -> None:
    program = (
        "import time\nfrom pathlib import Path\nprint('up', flush=True)\n"
        f"while not Path({str(tmp_path / 'go')!r}).exists(): time.sleep(0.02)\n"
    )
    agent = join(rig, boss, program)
    boss.start()
    running = boss.state("running")
    before = len(boss.lines)
    boss.cut()
    again = boss.registered(after=before)
    words = {"epoch": 1, "attempt": 1, "state": "running", "synced": False}
    assert again["running"] == words
    assert again["nonce"] == boss.registered()["nonce"]
    assert boss.state("running", after=before)["pid"] == running["pid"]
    # A coordinator that was restarted comes back on its old port.
    boss.close()
    (tmp_path / "go").touch()
    time.sleep(0.5)
    other = PlayedCoordinator(tmp_path, rig.secret, port=boss.port)
    assert other.state("ended")["reason"] == "succeeded"
    other.say("leave")
    assert rig.finish(agent) == 0
    other.close()


def test_silence_ends_the_program_before_anybody_replaces_it(
    rig: Rig, boss: PlayedCoordinator
) -> None:
    boss.lost_after = 3.0
    agent = join(rig, boss, "import signal\nsignal.signal(15, signal.SIG_IGN)\n" + WAITS)
    boss.start()
    pid = boss.state("running")["pid"]
    time.sleep(4.0)  # heartbeats are acknowledged: nothing happens
    assert not is_gone(pid)
    boss.acknowledge = False
    last = max(line["_at"] for line in boss.lines if line["type"] == "heartbeat")
    until(lambda: is_gone(pid))
    # A coordinator replaces what it took for lost so much later.
    assert time.monotonic() - last < boss.lost_after + CoordinatorConfig.lost_margin
    boss.acknowledge = True
    ended = boss.state("ended")
    assert (ended["reason"], ended["signal"]) == ("task_lost", signal.SIGKILL)
    boss.refuse = "another container has this place now"
    boss.cut()
    assert rig.finish(agent) == 0


def test_ports_are_held_until_the_program_and_renewed(
    rig: Rig, boss: PlayedCoordinator, tmp_path: Path
) -> None:
    """While the gang forms nobody gets them; the program binds its own without any option."""
    program = (
        "import socket\nfrom pathlib import Path\n"
        f"port = int(Path({str(tmp_path)!r}, 'p').read_text())\n"
        "taken = socket.socket()\ntaken.bind(('', port))\ntaken.listen()\n"
    )
    agent = join(rig, boss, program)
    first = boss.registered()["ports"]
    boss.say("ports")
    second = boss.wait(lambda line: line["type"] == "ports")["ports"]
    assert len(second) == len(first) == 1
    assert first != second
    until(lambda: can_bind(first[0]))
    assert not can_bind(second[0])
    (tmp_path / "p").write_text(str(second[0]))
    boss.start(Member("worker:0", "worker", 0, "h", "127.0.0.1", tuple(second)))
    assert boss.state("ended")["reason"] == "succeeded"
    boss.say("leave")
    assert rig.finish(agent) == 0


def can_bind(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True


def test_a_taken_port_is_told_apart_from_the_programs_own_error(
    rig: Rig, boss: PlayedCoordinator
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        join(rig, boss, f"import socket\nsocket.create_server(('127.0.0.1', {port}))\n")
        boss.start()
        ended = boss.state("ended")
    assert ended["reason"] == "address_in_use"
    assert "Address already in use" in ended["detail"]
    assert ended["retry"] == "yes"


def test_what_would_come_again_says_so(rig: Rig, boss: PlayedCoordinator) -> None:
    join(rig, boss, "import no_such_module_anywhere\n")
    boss.start()
    ended = boss.state("ended")
    assert (ended["reason"], ended["retry"]) == ("import_error", "no")
    assert ended["failure"]["type"] == "ModuleNotFoundError"


def test_several_processes_of_the_program_in_one_container(
    rig: Rig, boss: PlayedCoordinator, tmp_path: Path
) -> None:
    """Each has its rank; one that fails ends the others, and its end is the task's."""
    program = (
        "import os, sys, time\nfrom pathlib import Path\n"
        "rank = os.environ['RANK'], os.environ['LOCAL_RANK'], os.environ['WORLD_SIZE']\n"
        f"Path({str(tmp_path)!r}, f'rank-{{rank[0]}}').write_text(' '.join(rank))\n"
        f"Path({str(tmp_path)!r}, f'pid-{{rank[0]}}').write_text(str(os.getpid()))\n"
        "while os.environ['SUBMARINE_ATTEMPT'] == '1' and rank[1] == '0': time.sleep(1)\n"
        f"while len(list(Path({str(tmp_path)!r}).glob('rank-*'))) < 2: time.sleep(0.01)\n"
        "sys.exit(7 if os.environ['SUBMARINE_ATTEMPT'] == '1' else 0)\n"
    )
    agent = join(rig, boss, program, framework="pytorch", processes=2)
    assert boss.registered()["processes"] == 2
    gang = (
        Member("worker:0", "worker", 0, "h", "127.0.0.1", (4711,), processes=2),
        Member("worker:1", "worker", 1, "h", "127.0.0.1", (4712,), processes=1),
    )
    boss.start(*gang)
    ended = boss.state("ended", attempt=1)
    assert (ended["reason"], ended["exit_code"]) == ("program_error", 7)
    assert is_gone(int((tmp_path / "pid-0").read_text()))
    assert (tmp_path / "rank-0").read_text() == "0 0 3"
    assert (tmp_path / "rank-1").read_text() == "1 1 3"
    boss.start(*gang, attempt=2)
    assert boss.state("ended", attempt=2)["reason"] == "succeeded"
    boss.say("leave")
    assert rig.finish(agent) == 0


def test_a_helper_serves_before_the_program_and_ends_with_it(
    rig: Rig, boss: PlayedCoordinator
) -> None:
    """Horovod's rendezvous, which runs beside the chief."""
    program = (
        "import os, socket\n"
        "name = 'HOROVOD_GLOO_RENDEZVOUS_'\n"
        "place = os.environ[name + 'ADDR'], int(os.environ[name + 'PORT'])\n"
        "socket.create_connection(place, 5).close()\nprint('served')\n"
    )
    agent = join(rig, boss, program, framework="horovod")
    ports = boss.registered()["ports"]
    gang = (
        Member("worker:0", "worker", 0, "h", "127.0.0.1", tuple(ports)),
        Member("worker:1", "worker", 1, "h", "127.0.0.1", (9,)),
    )
    boss.start(*gang)
    ended = boss.state("ended")
    assert ended["reason"] == "succeeded", ended
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", ports[0]), 1)
    boss.say("leave")
    assert rig.finish(agent) == 0


def test_the_model_is_saved_while_the_program_goes_on(rig: Rig, boss: PlayedCoordinator) -> None:
    program = (
        "import os\nfrom pathlib import Path\n"
        "Path(os.environ['SUBMARINE_MODEL_DIR'], 'w').write_text('weights')\n" + WAITS
    )
    join(rig, boss, program)
    boss.start()
    until(lambda: (rig.scratch("worker-0") / "output/model/w").exists())
    boss.say("save", id="s1", name="best")
    saved = boss.wait(lambda line: line["type"] == "saved")
    assert saved["id"] == "s1"
    assert saved["version"]["name"] == "best"
    assert (rig.job_dir / "models/best/version.json").exists()
    boss.say("save", id="s2", name="best")
    error = boss.wait(lambda line: line["type"] == "saved" and line["id"] == "s2")["error"]
    assert "best" in error


def test_ended_from_outside_the_program_dies_and_its_log_is_shipped(tmp_path: Path) -> None:
    took: list[float] = []
    # YARN's patience is a quarter of a second; a busy machine may be slower now and then.
    while not took or (took[-1] >= 0.25 and len(took) < 10):
        place = tmp_path / str(len(took))
        place.mkdir()
        rig = Rig(place)
        boss = PlayedCoordinator(place, rig.secret)
        try:
            took.append(seconds_to_the_word(rig, boss))
        finally:
            rig.stop_all()
            boss.close()
    assert took[-1] < 0.25, took


def seconds_to_the_word(rig: Rig, boss: PlayedCoordinator) -> float:
    """How long after SIGTERM an agent said so; then all has ended as it should."""
    agent = join(rig, boss, WAITS)
    boss.start()
    pid = boss.state("running")["pid"]
    log = rig.scratch("worker-0") / "worker-0.stdout.log"
    until(lambda: log.exists() and log.read_bytes())
    began = time.monotonic()
    agent.send_signal(signal.SIGTERM)
    told = boss.wait(lambda line: line.get("kind") == "terminated")
    assert rig.finish(agent) == 1
    assert is_gone(pid)
    assert rig.shipped("stdout") == b"up\n"
    # Why, only the cluster knows: a pre-empted container is no failure.
    assert not [line for line in boss.lines if line.get("state") == "ended"]
    return float(told["_at"]) - began


#: Takes memory and has its container ended before the agent can look.
STROKE = (
    "os.kill(os.getppid(), signal.SIGSTOP)\nx = bytearray(300 << 20)\n"
    "for word in signal.SIGTERM, signal.SIGCONT: os.kill(os.getppid(), word)\n"
    "time.sleep(60)\n"
)


def test_ended_from_outside_for_its_memory_says_so_first(rig: Rig, boss: PlayedCoordinator) -> None:
    """YARN may see it before the agent's next look; all that it tells us is SIGTERM."""
    program = "import os, signal, time\n" + STROKE
    agent = join(rig, boss, program, memory=64)
    boss.start()
    ended = boss.state("ended")
    assert ended["reason"] == "out_of_memory"
    assert "of 64 MiB" in ended["detail"]
    rig.finish(agent)


def test_the_agents_own_port_has_the_logs_of_all_attempts(
    rig: Rig, boss: PlayedCoordinator
) -> None:
    join(rig, boss, "import os\nprint('attempt', os.environ['SUBMARINE_ATTEMPT'])\n" + WAITS)
    boss.start()
    boss.state("running")
    first = rig.scratch("worker-0") / "worker-0.stdout.log"
    until(lambda: first.exists() and first.read_bytes())
    boss.say("stop", why="again", grace=1.0)
    boss.state("ended", attempt=1)
    boss.start(attempt=2)
    boss.state("running", attempt=2)
    register = boss.registered()
    client = AgentClient(AgentAddress("127.0.0.1", register["agent_port"], rig.secret))

    def fetch(attempt: str) -> bytes:
        query = f"?task=worker:0&stream=stdout&offset=0&attempt={attempt}"
        return client._request("GET", wire.LOG + query)[1]

    until(lambda: fetch("e1-a2").startswith(b"attempt 2\n"))
    assert fetch("").startswith(b"attempt 2\n")
    assert fetch("e1-a1").startswith(b"attempt 1\n")
    with pytest.raises(ClusterError, match="404"):
        fetch("e9-a9")


GANG = [{"name": "worker", "instances": 2, "kind": "tracked"}]


def test_inputs_come_before_ready_and_a_missing_one_is_told(
    rig: Rig, boss: PlayedCoordinator, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    for name in ("a", "b", "c", "d"):
        (tmp_path / "data" / name).write_text(name)
    inputs = [NamedInput("DATA", str(tmp_path / "data"), shard=True)]
    program = (
        "import os\nprint(sorted(os.listdir(os.environ['SUBMARINE_INPUT_DATA'])))\n"
        "import sys; print(sys.argv[1] == os.environ['SUBMARINE_INPUT_DATA'])\n"
    )
    agent = join(rig, boss, program, fetch=inputs, roles=GANG, args=["%input_path%"])
    assert len(list((rig.scratch("worker-0") / "inputs/DATA").iterdir())) == 2
    # Only one task of two has started: it gets all of the files.
    boss.start()
    assert boss.state("ended")["reason"] == "succeeded"
    boss.say("leave")
    assert rig.finish(agent) == 0
    assert rig.shipped("stdout") == b"['a', 'b', 'c', 'd']\nTrue\n"
    other = rig.prepare("", name="other", fetch=[NamedInput("GONE", str(tmp_path / "gone"))])
    rig.launch(other, env=boss.environment())
    ended = boss.state("ended", reason="input_missing")
    assert ended["retry"] == "no"


def test_nobody_there_or_somebody_else(rig: Rig, boss: PlayedCoordinator, tmp_path: Path) -> None:
    """Another certificate is not our coordinator; what the environment lacks is one sentence."""
    stranger = PlayedCoordinator(tmp_path, create_secret("rig-20261121-0a1b"))
    agent = rig.launch(rig.prepare("print(1)"), env=stranger.environment())
    time.sleep(1.0)
    assert agent.poll() is None  # it goes on trying
    assert not stranger.heads
    stranger.close()
    agent.kill()
    for wrong in ("worker:x", "ps:0"):
        agent = rig.launch(rig.prepare("print(1)"), env=boss.environment(wrong))
        assert rig.finish(agent) == 2
        assert "is invalid" in rig.errors


@pytest.mark.parametrize("python", OLDEST_PYTHONS[1:])
def test_on_the_oldest_python(rig: Rig, boss: PlayedCoordinator, python: str) -> None:
    agent = rig.launch(rig.prepare("print('hello')"), env=boss.environment(), python=python)
    boss.state("ready")
    boss.start()
    assert boss.state("ended")["reason"] == "succeeded"
    boss.say("leave")
    assert rig.finish(agent) == 0


def test_an_agent_alone_says_why_before_its_container_is_shot(rig: Rig) -> None:
    """The same without a gang: SIGTERM leaves a quarter of a second, and the record comes first."""
    program = "import os, signal, time\nprint('up', flush=True)\ntime.sleep(1.5)\n" + STROKE
    agent = rig.start(program, memory=64, name="alone")
    rig.finish(agent)
    record = rig.record()
    assert record.reason is EndReason.OUT_OF_MEMORY, record.detail
    assert rig.shipped("stdout") == b"up\n"
