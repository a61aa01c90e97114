"""A real agent as one task of a gang; the test plays its coordinator."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.access import AgentAddress, AgentClient, create_secret
from submarine_jobs.errors import ClusterError
from submarine_runtime.protocol import CoordinatorConfig, EndReason, Member, NamedInput, wire
from tests.local.agent.agent_processes import OLDEST_PYTHONS, AgentProcesses
from tests.local.agent.fake_coordinator import FakeCoordinator, Line
from tests.processes import is_gone
from tests.waiting import until

WAITS = "import time\nprint('up', flush=True)\ntime.sleep(60)\n"


@pytest.fixture
def coordinator(agents: AgentProcesses, tmp_path: Path) -> Iterator[FakeCoordinator]:
    made = FakeCoordinator(tmp_path, agents.secret)
    yield made
    made.close()


def join(
    agents: AgentProcesses,
    coordinator: FakeCoordinator,
    program: str,
    task: str = "worker:0",
    **config: Any,
) -> subprocess.Popen[bytes]:
    """An agent that has said that it is ready."""
    role, index = task.split(":")
    scratch = agents.prepare(program, name=f"{role}-{index}", role=role, **config)
    agent = agents.launch(scratch, env=coordinator.environment(task, f"{role}-{index}.1"))
    coordinator.state("ready")
    return agent


def test_a_task_runs_and_leaves(agents: AgentProcesses, coordinator: FakeCoordinator) -> None:
    program = (
        "import os, json\n"
        "open(os.environ['SUBMARINE_MODEL_DIR'] + '/m', 'w').write('model')\n"
        "print(json.dumps({k: v for k, v in os.environ.items() if 'SUBMARINE' in k}))\n"
    )
    agent = join(agents, coordinator, program, params={"lr": 0.1, "opt-name": "adam"})
    register = coordinator.registered()
    assert register["task"] == "worker:0"
    assert register["seat"] == "worker-0.1"
    assert register["running"] is None
    assert len(register["ports"]) == 1
    assert register["node"] == "local"
    assert "Upgrade: submarine-link" in coordinator.heads[0]
    coordinator.start()
    running = coordinator.state("running", epoch=1, attempt=1)
    assert running["pid"] > 0
    ended = coordinator.state("ended")
    assert (ended["reason"], ended["exit_code"]) == ("succeeded", 0)
    assert ended["outputs"] == [{"path": "model/m", "size": 5}]
    coordinator.say("leave")
    left = coordinator.wait(lambda line: line["type"] == "left")
    assert left["missing"] == []
    assert agents.finish(agent) == 0
    shipped = agents.shipped("stdout")
    assert ended["logs"]["stdout"] == len(shipped)
    seen = json.loads(shipped)
    assert not [name for name in seen if name.startswith("SUBMARINE_AGENT")]
    assert seen["SUBMARINE_TASK_COUNT"] == "1"
    assert seen["SUBMARINE_PARAM_LR"] == "0.1"
    assert seen["SUBMARINE_PARAM_OPT_NAME"] == "adam"
    assert json.loads(Path(seen["SUBMARINE_PARAMS"]).read_text()) == {"lr": 0.1, "opt-name": "adam"}
    assert (agents.job_dir / "model/m").read_text() == "model"
    written = {path.name for path in agents.job_dir.iterdir()}
    assert not written & {"claim.json", "live.json", "record.json", "events"}


def test_another_attempt_in_the_same_container(
    agents: AgentProcesses, coordinator: FakeCoordinator
) -> None:
    program = (
        "import os, sys\nfrom pathlib import Path\n"
        "kept = Path(os.environ['SUBMARINE_CHECKPOINT_DIR'], 'step')\n"
        "print('attempt', os.environ['SUBMARINE_ATTEMPT'], kept.exists())\n"
        "kept.write_text('1')\n"
        "sys.exit(3 if os.environ['SUBMARINE_ATTEMPT'] == '1' else 0)\n"
    )
    agent = join(agents, coordinator, program)
    coordinator.start()
    first = coordinator.state("ended", epoch=1, attempt=1)
    assert (first["reason"], first["exit_code"], first["retry"]) == ("program_error", 3, "yes")
    coordinator.start(attempt=2, restore={"own": 1, "part": None})
    assert coordinator.state("ended", epoch=1, attempt=2)["reason"] == "succeeded"
    coordinator.start(attempt=2, restore={"own": 1, "part": None})  # told twice, started once
    coordinator.say("leave")
    assert agents.finish(agent) == 0
    logs = {
        path.parent.name: path.read_text()
        for path in agents.job_dir.glob("logs/worker-0/*/stdout.0*")
    }
    assert logs == {"e1-a1": "attempt 1 False\n", "e1-a2": "attempt 2 True\n"}
    assert [line["state"] for line in coordinator.lines if line["type"] == "state"].count(
        "running"
    ) == 2


def test_told_to_stop_and_to_go(agents: AgentProcesses, coordinator: FakeCoordinator) -> None:
    program = (
        "import os, time\nfrom pathlib import Path\n"
        "Path(os.environ['SUBMARINE_TENSORBOARD_DIR'], 'events').write_text('x')\n" + WAITS
    )
    gang = (
        Member("chief:0", "chief", 0, "h", "10.0.0.1", (1,)),
        Member("ps:0", "ps", 0, "h", "127.0.0.1", (2,), kind="untracked"),
    )
    agent = join(agents, coordinator, program, "ps:0")
    coordinator.start(*gang)
    coordinator.state("running")
    until(lambda: b"up" in (agents.scratch("ps-0") / "ps-0.stdout.log").read_bytes())
    began = time.monotonic()
    coordinator.say("stop", why="the job has ended", grace=300.0)
    ended = coordinator.state("ended")
    assert time.monotonic() - began < 60, "it waited for the whole grace"
    assert (ended["reason"], ended["detail"]) == ("cancelled", "the job has ended")
    assert ended["signal"] == signal.SIGTERM
    coordinator.say("leave")
    left = coordinator.wait(lambda line: line["type"] == "left")
    assert left["outputs"] == [{"path": "tasks/ps-0/tensorboard/events", "size": 1}]
    assert agents.finish(agent) == 0


def test_a_refused_agent_runs_nothing(agents: AgentProcesses, coordinator: FakeCoordinator) -> None:
    coordinator.refuse = "another container has this place"
    agent = agents.launch(agents.prepare("raise SystemExit(1)"), env=coordinator.environment())
    assert agents.finish(agent) == 0
    assert "another container has this place" in agents.errors
    assert not (agents.scratch() / "worker-0.stdout.log").exists()


def test_the_program_never_notices_a_link_that_is_away(
    agents: AgentProcesses, coordinator: FakeCoordinator, tmp_path: Path
) -> None:
    program = (
        "import time\nfrom pathlib import Path\nprint('up', flush=True)\n"
        f"while not Path({str(tmp_path / 'go')!r}).exists(): time.sleep(0.02)\n"
    )
    agent = join(agents, coordinator, program)
    coordinator.start()
    running = coordinator.state("running")
    before = len(coordinator.lines)
    coordinator.cut()
    again = coordinator.registered(after=before)
    words = {"epoch": 1, "attempt": 1, "state": "running", "synced": False}
    assert again["running"] == words
    assert again["nonce"] == coordinator.registered()["nonce"]
    assert coordinator.state("running", after=before)["pid"] == running["pid"]
    # A coordinator that was restarted comes back on its old port.
    coordinator.close()
    (tmp_path / "go").touch()
    time.sleep(0.5)
    other = FakeCoordinator(tmp_path, agents.secret, port=coordinator.port)
    assert other.state("ended")["reason"] == "succeeded"
    other.say("leave")
    assert agents.finish(agent) == 0
    other.close()


def test_a_link_that_breaks_at_once_is_tried_again_ever_more_slowly(
    agents: AgentProcesses, coordinator: FakeCoordinator
) -> None:
    hear = coordinator._hear

    def hear_and_confuse(link: ssl.SSLSocket, line: Line) -> None:
        hear(link, line)
        if line["type"] == "register":
            coordinator.say("ack", n="no number")

    coordinator._hear = hear_and_confuse  # type: ignore[method-assign]
    scratch = agents.prepare("", name="worker-0", role="worker")
    agent = agents.launch(scratch, env=coordinator.environment())
    coordinator.registered()
    time.sleep(3)
    # The shortest pauses are 0.025, 0.05, 0.1, 0.2, 0.4 and then 0.5 s.
    assert 4 <= len(coordinator.heads) <= 11
    coordinator.refuse = "enough"
    agents.finish(agent)


def test_silence_ends_the_program_before_anybody_replaces_it(
    agents: AgentProcesses, coordinator: FakeCoordinator
) -> None:
    coordinator.lost_after = 3.0
    agent = join(agents, coordinator, "import signal\nsignal.signal(15, signal.SIG_IGN)\n" + WAITS)
    coordinator.start()
    pid = coordinator.state("running")["pid"]
    time.sleep(4.0)  # heartbeats are acknowledged: nothing happens
    assert not is_gone(pid)
    coordinator.acknowledge = False
    last = max(line["_at"] for line in coordinator.lines if line["type"] == "heartbeat")
    until(lambda: is_gone(pid))
    # A coordinator replaces what it took for lost so much later.
    assert time.monotonic() - last < coordinator.lost_after + CoordinatorConfig.lost_margin
    coordinator.acknowledge = True
    ended = coordinator.state("ended")
    assert (ended["reason"], ended["signal"]) == ("task_lost", signal.SIGKILL)
    coordinator.refuse = "another container has this place now"
    coordinator.cut()
    assert agents.finish(agent) == 0


def test_ports_are_held_until_the_program_and_renewed(
    agents: AgentProcesses, coordinator: FakeCoordinator, tmp_path: Path
) -> None:
    """While the gang forms no process gets them; the program binds its own without an option."""
    program = (
        "import socket\nfrom pathlib import Path\n"
        f"port = int(Path({str(tmp_path)!r}, 'p').read_text())\n"
        "taken = socket.socket()\ntaken.bind(('', port))\ntaken.listen()\n"
    )
    agent = join(agents, coordinator, program)
    first = coordinator.registered()["ports"]
    coordinator.say("ports")
    second = coordinator.wait(lambda line: line["type"] == "ports")["ports"]
    assert len(second) == len(first) == 1
    assert first != second
    until(lambda: can_bind(first[0]))
    assert not can_bind(second[0])
    (tmp_path / "p").write_text(str(second[0]))
    coordinator.start(Member("worker:0", "worker", 0, "h", "127.0.0.1", tuple(second)))
    assert coordinator.state("ended")["reason"] == "succeeded"
    coordinator.say("leave")
    assert agents.finish(agent) == 0


def can_bind(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True


def test_a_taken_port_is_distinguished_from_the_programs_own_error(
    agents: AgentProcesses, coordinator: FakeCoordinator
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        join(agents, coordinator, f"import socket\nsocket.create_server(('127.0.0.1', {port}))\n")
        coordinator.start()
        ended = coordinator.state("ended")
    assert ended["reason"] == "address_in_use"
    assert "Address already in use" in ended["detail"]
    assert ended["retry"] == "yes"


def test_what_would_come_again_says_so(
    agents: AgentProcesses, coordinator: FakeCoordinator
) -> None:
    join(agents, coordinator, "import no_such_module_anywhere\n")
    coordinator.start()
    ended = coordinator.state("ended")
    assert (ended["reason"], ended["retry"]) == ("import_error", "no")
    assert ended["failure"]["type"] == "ModuleNotFoundError"


def test_several_processes_of_the_program_in_one_container(
    agents: AgentProcesses, coordinator: FakeCoordinator, tmp_path: Path
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
    agent = join(agents, coordinator, program, framework="pytorch", processes=2)
    assert coordinator.registered()["processes"] == 2
    gang = (
        Member("worker:0", "worker", 0, "h", "127.0.0.1", (4711,), processes=2),
        Member("worker:1", "worker", 1, "h", "127.0.0.1", (4712,), processes=1),
    )
    coordinator.start(*gang)
    ended = coordinator.state("ended", attempt=1)
    assert (ended["reason"], ended["exit_code"]) == ("program_error", 7)
    assert is_gone(int((tmp_path / "pid-0").read_text()))
    assert (tmp_path / "rank-0").read_text() == "0 0 3"
    assert (tmp_path / "rank-1").read_text() == "1 1 3"
    coordinator.start(*gang, attempt=2)
    assert coordinator.state("ended", attempt=2)["reason"] == "succeeded"
    coordinator.say("leave")
    assert agents.finish(agent) == 0


def test_a_helper_serves_before_the_program_and_ends_with_the_job(
    agents: AgentProcesses, coordinator: FakeCoordinator
) -> None:
    """Horovod's rendezvous beside the chief, whose program may end before the others."""
    program = (
        "import os, socket\n"
        "name = 'HOROVOD_GLOO_RENDEZVOUS_'\n"
        "place = os.environ[name + 'ADDR'], int(os.environ[name + 'PORT'])\n"
        "socket.create_connection(place, 5).close()\nprint('served')\n"
    )
    agent = join(agents, coordinator, program, framework="horovod")
    ports = coordinator.registered()["ports"]
    gang = (
        Member("worker:0", "worker", 0, "h", "127.0.0.1", tuple(ports)),
        Member("worker:1", "worker", 1, "h", "127.0.0.1", (9,)),
    )
    coordinator.start(*gang)
    ended = coordinator.state("ended")
    assert ended["reason"] == "succeeded", ended
    socket.create_connection(("127.0.0.1", ports[0]), 1).close()
    coordinator.say("leave")
    assert agents.finish(agent) == 0
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", ports[0]), 1)


def test_the_model_is_saved_while_the_program_goes_on(
    agents: AgentProcesses, coordinator: FakeCoordinator
) -> None:
    program = (
        "import os\nfrom pathlib import Path\n"
        "Path(os.environ['SUBMARINE_MODEL_DIR'], 'w').write_text('weights')\n" + WAITS
    )
    join(agents, coordinator, program)
    coordinator.start()
    until(lambda: (agents.scratch("worker-0") / "output/model/w").exists())
    coordinator.say("save", id="s1", name="best")
    saved = coordinator.wait(lambda line: line["type"] == "saved")
    assert saved["id"] == "s1"
    assert saved["version"]["name"] == "best"
    assert (agents.job_dir / "models/best/version.json").exists()
    coordinator.say("save", id="s2", name="best")
    error = coordinator.wait(lambda line: line["type"] == "saved" and line["id"] == "s2")["error"]
    assert "best" in error


def test_ended_from_outside_the_program_dies_and_its_log_is_shipped(tmp_path: Path) -> None:
    took: list[float] = []
    # YARN's patience is a quarter of a second; a busy machine may be slower now and then.
    while not took or (took[-1] >= 0.25 and len(took) < 10):
        place = tmp_path / str(len(took))
        place.mkdir()
        agents = AgentProcesses(place)
        coordinator = FakeCoordinator(place, agents.secret)
        try:
            took.append(seconds_to_the_word(agents, coordinator))
        finally:
            agents.stop_all()
            coordinator.close()
    assert took[-1] < 0.25, took


def seconds_to_the_word(agents: AgentProcesses, coordinator: FakeCoordinator) -> float:
    """How long after SIGTERM an agent said so; then all has ended as it should."""
    agent = join(agents, coordinator, WAITS)
    coordinator.start()
    pid = coordinator.state("running")["pid"]
    log = agents.scratch("worker-0") / "worker-0.stdout.log"
    until(lambda: log.exists() and log.read_bytes())
    began = time.monotonic()
    agent.send_signal(signal.SIGTERM)
    told = coordinator.wait(lambda line: line.get("kind") == "terminated")
    assert agents.finish(agent) == 1
    assert is_gone(pid)
    assert agents.shipped("stdout") == b"up\n"
    # Why, only the cluster knows: a pre-empted container is no failure.
    assert not [line for line in coordinator.lines if line.get("state") == "ended"]
    return float(told["_at"]) - began


#: Takes memory and has its container ended before the agent can look.
STROKE = (
    "os.kill(os.getppid(), signal.SIGSTOP)\nx = bytearray(300 << 20)\n"
    "for word in signal.SIGTERM, signal.SIGCONT: os.kill(os.getppid(), word)\n"
    "time.sleep(60)\n"
)


def test_ended_from_outside_for_its_memory_says_so_first(
    agents: AgentProcesses, coordinator: FakeCoordinator
) -> None:
    """YARN may see it before the agent's next look; all that it tells us is SIGTERM."""
    program = "import os, signal, time\n" + STROKE
    agent = join(agents, coordinator, program, memory=64)
    coordinator.start()
    ended = coordinator.state("ended")
    assert ended["reason"] == "out_of_memory"
    assert "of 64 MiB" in ended["detail"]
    agents.finish(agent)


def test_the_agents_own_port_has_the_logs_of_all_attempts(
    agents: AgentProcesses, coordinator: FakeCoordinator
) -> None:
    join(
        agents,
        coordinator,
        "import os\nprint('attempt', os.environ['SUBMARINE_ATTEMPT'])\n" + WAITS,
    )
    coordinator.start()
    coordinator.state("running")
    first = agents.scratch("worker-0") / "worker-0.stdout.log"
    until(lambda: first.exists() and first.read_bytes())
    coordinator.say("stop", why="again", grace=1.0)
    coordinator.state("ended", attempt=1)
    coordinator.start(attempt=2)
    coordinator.state("running", attempt=2)
    register = coordinator.registered()
    client = AgentClient(AgentAddress("127.0.0.1", register["agent_port"], agents.secret))

    def fetch(attempt: str) -> bytes:
        query = f"?task=worker:0&stream=stdout&offset=0&attempt={attempt}"
        return client._request("GET", wire.LOG + query).body

    until(lambda: fetch("e1-a2").startswith(b"attempt 2\n"))
    assert fetch("").startswith(b"attempt 2\n")
    assert fetch("e1-a1").startswith(b"attempt 1\n")
    with pytest.raises(ClusterError, match="404"):
        fetch("e9-a9")


GANG = [{"name": "worker", "instances": 2, "kind": "tracked"}]


def test_inputs_come_before_ready_and_a_missing_one_is_reported(
    agents: AgentProcesses, coordinator: FakeCoordinator, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    for name in ("a", "b", "c", "d"):
        (tmp_path / "data" / name).write_text(name)
    inputs = [NamedInput("DATA", str(tmp_path / "data"), shard=True)]
    program = (
        "import os\nprint(sorted(os.listdir(os.environ['SUBMARINE_INPUT_DATA'])))\n"
        "import sys; print(sys.argv[1] == os.environ['SUBMARINE_INPUT_DATA'])\n"
    )
    agent = join(agents, coordinator, program, fetch=inputs, roles=GANG, args=["%input_path%"])
    assert len(list((agents.scratch("worker-0") / "inputs/DATA").iterdir())) == 2
    # Only one task of two has started: it gets all of the files.
    coordinator.start()
    assert coordinator.state("ended")["reason"] == "succeeded"
    coordinator.say("leave")
    assert agents.finish(agent) == 0
    assert agents.shipped("stdout") == b"['a', 'b', 'c', 'd']\nTrue\n"
    other = agents.prepare("", name="other", fetch=[NamedInput("GONE", str(tmp_path / "gone"))])
    agents.launch(other, env=coordinator.environment())
    ended = coordinator.state("ended", reason="input_missing")
    assert ended["retry"] == "no"


def test_no_coordinator_or_another_one(
    agents: AgentProcesses, coordinator: FakeCoordinator, tmp_path: Path
) -> None:
    """Another certificate is not our coordinator; what the environment lacks is one sentence."""
    other = FakeCoordinator(tmp_path, create_secret("agent-20261121-0a1b"))
    agent = agents.launch(agents.prepare("print(1)"), env=other.environment())
    time.sleep(1.0)
    assert agent.poll() is None  # it goes on trying
    assert not other.heads
    other.close()
    agent.kill()
    for wrong in ("worker:x", "ps:0"):
        agent = agents.launch(agents.prepare("print(1)"), env=coordinator.environment(wrong))
        assert agents.finish(agent) == 2
        assert "is invalid" in agents.errors


@pytest.mark.parametrize("python", OLDEST_PYTHONS[1:])
def test_on_the_oldest_python(
    agents: AgentProcesses, coordinator: FakeCoordinator, python: str
) -> None:
    agent = agents.launch(
        agents.prepare("print('hello')"), env=coordinator.environment(), python=python
    )
    coordinator.state("ready")
    coordinator.start()
    assert coordinator.state("ended")["reason"] == "succeeded"
    coordinator.say("leave")
    assert agents.finish(agent) == 0


def test_an_agent_alone_says_why_before_its_container_is_shot(agents: AgentProcesses) -> None:
    """The same without a gang: SIGTERM leaves a quarter of a second, and the record comes first."""
    program = "import os, signal, time\nprint('up', flush=True)\ntime.sleep(1.5)\n" + STROKE
    agent = agents.start(program, memory=64, name="alone")
    agents.finish(agent)
    record = agents.record()
    assert record.reason is EndReason.OUT_OF_MEMORY, record.detail
    assert agents.shipped("stdout") == b"up\n"
