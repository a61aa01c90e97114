"""The rule ``union``: several tasks write parts of one checkpoint, and every task needs all."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from submarine_runtime.protocol import from_json
from submarine_runtime.restore_points import RestorePoint, Snapshot, choose_restore_point

TASKS = ("worker:0", "worker:1")


def snapshot(task: str, number: int, *files: str, **more: Any) -> Snapshot:
    return Snapshot(task, epoch=1, attempt=1, number=number, files=files, world=2, **more)


def dcp(task: str, number: int, *steps: int, ranks: int = 2, **more: Any) -> Snapshot:
    """``torch.distributed.checkpoint``: one file for each rank; rank 0 writes ``.metadata``."""
    places = [f"step_{step}/" for step in steps] or [""]
    files = [f"{place}__{task[-1]}_0.distcp" for place in places]
    markers = [f"{place}.metadata" for place in places] if task == "worker:0" else []
    parts = tuple(f"__{rank}_0.distcp" for rank in range(ranks))
    needs = dict.fromkeys(markers, parts)
    return snapshot(task, number, *files, *markers, needs=needs, **more)


def hf(task: str, number: int, *steps: int, **more: Any) -> Snapshot:
    """transformers' Trainer: rank 0 writes the model, each rank the state of its generators."""
    files = []
    for step in steps:
        files.append(f"checkpoint-{step}/rng_state_{task[-1]}.pth")
        if task == "worker:0":
            files += [f"checkpoint-{step}/{name}" for name in ("model", "trainer_state.json")]
    return snapshot(task, number, *files, **more)


def deepspeed(task: str, number: int, *steps: int, **more: Any) -> Snapshot:
    files, rank = [], task[-1]
    for step in steps:
        place = f"global_step{step}"
        files.append(f"{place}/bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")
        if task == "worker:0":
            files.append(f"{place}/mp_rank_00_model_states.pt")
    latest = {"latest": steps[-1:]} if task == "worker:0" else {}
    names = [*files, *latest, *(["zero_to_fp32.py"] if latest else [])]
    digests = {**dict.fromkeys(names, 1), "latest": steps[-1]}
    digests = {name: digests[name] for name in names}
    return snapshot(task, number, *names, steps=latest, digests=digests, **more)


def accelerate(task: str, number: int, *steps: int, **more: Any) -> Snapshot:
    files = [f"checkpoints/checkpoint_{step}/random_states_{task[-1]}.pkl" for step in steps]
    if task == "worker:0":
        files += [f"checkpoints/checkpoint_{step}/model.safetensors" for step in steps]
    return snapshot(task, number, *files, **more)


LIBRARIES = [dcp, hf, deepspeed, accelerate]


def chosen(*snapshots: Snapshot, policy: str = "auto", **more: Any) -> RestorePoint:
    found: dict[str, list[Snapshot]] = {}
    for one in snapshots:
        found.setdefault(one.task, []).append(one)
    words = {"tasks": TASKS, "chief": "worker:0", **more}
    choice = choose_restore_point(found, policy, **words)
    plain = from_json(RestorePoint, json.loads(json.dumps(choice.to_json())))
    parts = {task: part.without_files() for task, part in choice.parts.items()}
    assert plain == replace(choice, parts=parts)
    return choice


def provided(choice: RestorePoint) -> dict[str, set[str]]:
    """Task -> the files that every task gets from it."""
    found = {}
    for task in choice.shared:
        part = choice.parts[task]
        found[task] = {
            name
            for name in part.snapshot.files
            if not any(name == out or name.startswith(out + "/") for out in part.left_out)
        }
    return found


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_task_gets_the_files_of_all_tasks_of_the_newest_common_step(library: Any) -> None:
    ahead = [library("worker:0", 1, 3), library("worker:0", 2, 3, 6), library("worker:1", 1, 3)]
    choice = chosen(*ahead)
    assert (choice.rule, choice.step, choice.shared) == ("union", (3,), TASKS)
    assert choice.warnings == ()
    assert "the files of all tasks at step 3 (rule union)" in choice.sentence()
    names = set().union(*provided(choice).values())
    assert names >= set(library("worker:1", 1, 3).files)
    assert not [name for name in names if "6/" in name]
    choice = chosen(*ahead, library("worker:1", 2, 3, 6))
    assert choice.step == (6,)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_checkpoint_without_the_part_of_a_lost_task_is_not_chosen(library: Any) -> None:
    choice = chosen(library("worker:0", 1, 3))
    assert (choice.rule, choice.empty) == ("beginning", True)
    assert "no complete checkpoint of all tasks" in choice.warnings[0]
    assert "worker:0 has 3" in choice.warnings[0]
    assert chosen(library("worker:0", 1, 3), policy="strict").failure


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_checkpoint_without_its_marker_is_not_chosen(library: Any) -> None:
    """The disk was full, or the task that writes the marker was killed before it."""
    whole = library("worker:0", 2, 3, 6)
    marker = {"step_6/.metadata", "checkpoint-6/trainer_state.json"}
    marker |= {"checkpoints/checkpoint_6/random_states_0.pkl"}
    files = tuple(name for name in whole.files if name not in marker)
    steps = {"latest": (3,)} if library is deepspeed else {}
    cut = replace(whole, files=files, steps=steps)
    both = [library("worker:1", 2, 3, 6), cut, library("worker:0", 1, 3), library("worker:1", 1, 3)]
    assert chosen(both[2], both[3], both[1], both[0]).step == (3,)


def test_remains_of_a_deleted_checkpoint_are_left_out() -> None:
    """The Trainer deletes old checkpoints in rank 0 only."""
    choice = chosen(hf("worker:0", 1, 6), hf("worker:1", 1, 3, 6))
    assert choice.step == (6,)
    assert provided(choice)["worker:1"] == {"checkpoint-6/rng_state_1.pth"}


def test_tasks_that_are_not_in_the_gang_any_more_provide_their_files() -> None:
    tasks = [f"worker:{number}" for number in range(4)]
    several = [replace(dcp(task, 1, 5, ranks=4), world=4) for task in tasks]
    choice = chosen(*several, others=tasks[2:])
    assert (choice.rule, choice.step, choice.shared) == ("union", (5,), tuple(tasks))
    # Any other rule is for the tasks of the gang only.
    assert set(chosen(*several, others=tasks[2:], policy="own").parts) == set(TASKS)


def test_different_files_of_one_name_are_those_of_the_chief_with_a_warning() -> None:
    def both(task: str, digest: int) -> Snapshot:
        one = hf(task, 1, 3)
        name = "checkpoint-3/config.json"
        return replace(one, files=(*one.files, name), digests={name: digest})

    assert chosen(both("worker:0", 1), both("worker:1", 1)).warnings == ()
    choice = chosen(both("worker:0", 1), both("worker:1", 2))
    assert (choice.rule, choice.shared) == ("union", TASKS)
    assert choice.warnings == (
        "Several tasks wrote different files of the same name, and those of worker:0 are restored: "
        "checkpoint-3/config.json.",
    )
    assert chosen(both("worker:0", 1), both("worker:1", 2), policy="strict").failure


def test_a_directory_without_a_step_needs_a_round_in_which_no_task_changed_it() -> None:
    """``dcp.save`` to one path again and again: the old parts look like the new ones."""

    def same(task: str, number: int, taken: int, answered: int = 0) -> Snapshot:
        return dcp(task, number, round=taken, answered=answered)

    # At round 3 worker:0 had written its new part, and worker:1 had not yet.
    old = [same("worker:0", 1, 0, 2), same("worker:1", 1, 0, 3)]
    choice = chosen(*old, same("worker:0", 2, 2))
    assert (choice.rule, choice.round, choice.step) == ("union", 2, None)
    assert choice.parts["worker:0"].snapshot.number == 1
    assert "snapshot round 2 (rule union)" in choice.sentence()
    new = [same("worker:0", 2, 2, 4), same("worker:1", 2, 3, 4)]
    assert chosen(old[0], new[0], old[1], same("worker:1", 2, 3)).round == 3
    choice = chosen(old[0], new[0], old[1], new[1])
    assert (choice.round, choice.parts["worker:1"].snapshot.number) == (4, 2)
    assert chosen(same("worker:0", 2, 3), same("worker:1", 1, 0, 3)).rule == "beginning"


@pytest.mark.parametrize("process", ["0", "{rank}"], ids=["single", "local"])
def test_orbax_with_a_directory_for_each_process_keeps_its_rule(process: str) -> None:
    """Single processes, or several without a primary one: each restores its own files.

    Orbax deletes a checkpoint file by file: the marker of one task may be gone.
    """

    def orbax(task: str, number: int, *steps: int) -> Snapshot:
        own = f"ocdbt.process_{process.format(rank=task[-1])}"
        names = ["_CHECKPOINT_METADATA", "state/manifest.ocdbt", f"state/{own}/d/{task[-1]}a"]
        files = [f"{step}/{name}" for step in steps for name in names]
        left = f"3/{names[2]}" if task == "worker:1" else f"3/{names[0]}"
        return snapshot(task, number, *files, left)

    both = [orbax(task, number, 3 * number + 3) for task in TASKS for number in (1, 2)]
    choice = chosen(*both)
    assert (choice.rule, choice.step) == ("own", (9,))
    assert {task: part.snapshot.task for task, part in choice.parts.items()} == {
        task: task for task in TASKS
    }


def test_own_files_named_by_rank_are_not_parts() -> None:
    ranks = [snapshot(task, 1, f"rank{task[-1]}_step_3.pt", "latest") for task in TASKS]
    assert chosen(*ranks).rule == "own"


def test_the_rule_can_be_forced() -> None:
    files = [snapshot(task, 1, f"rank{task[-1]}_step_3.pt") for task in TASKS]
    assert chosen(*files).rule == "own"
    choice = chosen(*files, policy="union")
    assert (choice.rule, choice.step, choice.shared) == ("union", (3,), TASKS)
    assert chosen(hf("worker:0", 1, 3), hf("worker:1", 1, 3), policy="own").rule == "own"
    assert chosen(hf("worker:0", 1, 3), hf("worker:1", 1, 3), policy="chief").rule == "chief"
    assert chosen(policy="union").rule == "none"
