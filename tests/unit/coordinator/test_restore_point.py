"""The choice of a gang's restore point: rules, steps in file names, progress."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from submarine_runtime.protocol import from_json
from submarine_runtime.restore_points import (
    Progress,
    RestorePoint,
    Snapshot,
    StepNames,
    choose_restore_point,
    progress,
)

TASKS = ("worker:0", "worker:1")


def snapshot(task: str, number: int, *files: str, **more: Any) -> Snapshot:
    return Snapshot(task, epoch=1, attempt=1, number=number, files=files, **more)


def tf(task: str, number: int, *steps: int, **more: Any) -> Snapshot:
    """A snapshot of TensorFlow's CheckpointManager."""
    names = ["checkpoint"]
    for step in steps:
        names += [f"ckpt-{step}.index", f"ckpt-{step}.data-00000-of-00001"]
    return snapshot(task, number, *names, **more)


def own(task: str, number: int, *steps: int, **more: Any) -> Snapshot:
    """A snapshot of a program whose file names contain the rank."""
    rank = task[-1]
    return snapshot(task, number, *[f"rank{rank}_step_{step}.pt" for step in steps], **more)


def chosen(*snapshots: Snapshot, policy: str = "auto", **more: Any) -> RestorePoint:
    found: dict[str, list[Snapshot]] = {}
    for one in snapshots:
        found.setdefault(one.task, []).append(one)
    words = {"tasks": TASKS, "chief": "worker:0", **more}
    choice = choose_restore_point(found, policy, **words)
    assert from_json(RestorePoint, json.loads(json.dumps(choice.to_json()))) == replace(
        choice,
        parts={task: part.without_files() for task, part in choice.parts.items()},
    )
    return choice


def numbers(choice: RestorePoint) -> dict[str, tuple[str, int]]:
    return {task: (part.snapshot.task, part.snapshot.number) for task, part in choice.parts.items()}


@pytest.mark.parametrize(
    ("name", "shape", "step"),
    [
        ("ckpt-12.index", "ckpt-#.index", (12,)),
        ("ckpt-12.data-00000-of-00001", "ckpt-#.data-00000-of-00001", (12,)),
        ("epoch=3-step=500.ckpt", "epoch=#-step=#.ckpt", (3, 500)),
        ("epoch_12.pt", "epoch_#.pt", (12,)),
        ("checkpoint-500/optimizer.pt", "checkpoint-#/optimizer.pt", (500,)),
        ("global_step500/mp_rank_00.pt", "global_step#/mp_rank_00.pt", (500,)),
        ("step_00012/__1_0.distcp", "step_#/__1_0.distcp", (12,)),
        ("rank1.pt", "rank1.pt", ()),
        ("__1_0.distcp", "__1_0.distcp", ()),
        ("model-00001-of-00003.safetensors", "model-00001-of-00003.safetensors", ()),
        ("footstep1.pt", "footstep1.pt", ()),
        ("checkpoint", "checkpoint", ()),
    ],
)
def test_steps_in_names_of_known_patterns(name: str, shape: str, step: tuple[int, ...]) -> None:
    assert StepNames({}).split(name) == (shape, step)


def test_a_number_that_changes_between_snapshots_of_one_task_is_a_step() -> None:
    found = {
        "worker:0": [
            snapshot("worker:0", 1, "model_7.pt", "12/state", "rank0.pt", "w.3-0.41.keras"),
            snapshot("worker:0", 2, "model_9.pt", "13/state", "rank0.pt", "w.4-0.37.keras"),
        ],
        "worker:1": [snapshot("worker:1", 1, "rank1.pt")],
    }
    names = StepNames(found)
    assert names.split("model_9.pt") == ("model_#.pt", (9,))
    assert names.split("13/state") == ("#/state", (13,))
    assert names.split("w.4-0.37.keras") == ("w.#-#.keras", (4,))
    # The names of two tasks differ: that is no change.
    assert names.split("rank0.pt") == ("rank0.pt", ())


def test_a_restore_point_stores_which_numbers_change() -> None:
    """Orbax: bare numbers, and names with random parts. After a restart there is one snapshot."""

    def orbax(task: str, number: int, *steps: int) -> Snapshot:
        names = [f"{step}/_METADATA" for step in steps]
        return snapshot(
            task, number, *names, f"{steps[-1]}/d/{'abcdef'[steps[-1]]}-{'xy'['1' in task]}"
        )

    both = [orbax(task, number, *range(number, number + 3)) for task in TASKS for number in (1, 2)]
    first = chosen(*both)
    assert (first.rule, first.step) == ("own", (4,))
    again = [orbax("worker:0", 1, 3, 4, 5), orbax("worker:1", 1, 3, 4, 5)]
    assert chosen(*again).step is None
    choice = chosen(*again, changing=first.changing)
    assert (choice.rule, choice.step, choice.changing) == ("own", (5,), first.changing)


def test_no_snapshot_gives_an_empty_restore_point() -> None:
    choice = chosen()
    assert (choice.rule, choice.empty, choice.warnings, choice.failure) == ("none", True, (), "")
    assert chosen(policy="strict").failure == ""


def test_tasks_with_the_same_names_restore_the_newest_snapshot_of_the_chief() -> None:
    choice = chosen(tf("worker:0", 7, 10, 11), tf("worker:1", 9, 11, 12))
    assert (choice.rule, choice.step, choice.source) == ("chief", (11,), "worker:0")
    assert numbers(choice) == {"worker:0": ("worker:0", 7), "worker:1": ("worker:0", 7)}
    assert (choice.warnings, choice.failure) == ((), "")
    assert choice.sentence() == (
        "All tasks restore snapshot 7 of worker:0 e1-a1 at step 11 (rule chief)."
    )


def test_one_writer_that_is_not_the_chief_is_the_source() -> None:
    choice = chosen(tf("worker:1", 4, 3), tasks=("chief:0", *TASKS, "ps:0"), chief="chief:0")
    assert (choice.rule, choice.source) == ("chief", "worker:1")
    assert set(numbers(choice)) == {"chief:0", "worker:0", "worker:1", "ps:0"}
    assert set(numbers(choice).values()) == {("worker:1", 4)}


def test_temporary_directories_are_not_files() -> None:
    workers = (
        snapshot("worker:1", 1, "workertemp_1/ckpt-9.index", "ckpt-9_temp/part-0"),
        snapshot("worker:1", 2, "workertemp_1/ckpt-10.index"),
    )
    choice = chosen(tf("worker:0", 1, 9), *workers, policy="strict")
    assert (choice.rule, choice.failure) == ("chief", "")
    assert numbers(choice)["worker:1"] == ("worker:0", 1)


def test_tasks_with_names_of_their_own_restore_the_newest_common_step() -> None:
    choice = chosen(
        own("worker:0", 1, 10),
        own("worker:0", 2, 11),
        own("worker:0", 3, 12),
        own("worker:1", 1, 10),
        own("worker:1", 2, 11),
        policy="strict",
    )
    assert (choice.rule, choice.step, choice.failure) == ("own", (11,), "")
    assert numbers(choice) == {"worker:0": ("worker:0", 2), "worker:1": ("worker:1", 2)}
    assert all(part.left_out == () for part in choice.parts.values())


def test_later_files_of_a_snapshot_are_left_out() -> None:
    choice = chosen(own("worker:0", 3, 10, 11, 12), own("worker:1", 5, 9, 10))
    assert (choice.step, numbers(choice)["worker:0"]) == ((10,), ("worker:0", 3))
    assert choice.parts["worker:0"].left_out == ("rank0_step_11.pt", "rank0_step_12.pt")
    directories = snapshot("worker:0", 1, "step_4/rank0.a", "step_5/rank0.a", "step_5/x/rank0.b")
    # Step 4 lacks a kind of file that step 5 has.
    choice = chosen(directories, snapshot("worker:1", 1, "step_5/rank1.a", "step_4/rank1.a"))
    assert (choice.step, choice.parts["worker:1"].left_out) == ((5,), ())
    whole = snapshot("worker:0", 1, "step_4/rank0.a", "step_5/rank0.a")
    choice = chosen(whole, snapshot("worker:1", 1, "step_4/rank1.a"))
    assert choice.parts["worker:0"].left_out == ("step_5",)


def test_an_incomplete_older_step_is_not_offered() -> None:
    half = snapshot("worker:0", 1, "ckpt-3.r0.index", "ckpt-4.r0.index", "ckpt-4.r0.data")
    choice = chosen(half, snapshot("worker:1", 1, "ckpt-3.r1.index", "ckpt-3.r1.data"))
    assert choice.rule == "beginning"


def test_a_file_without_a_step_belongs_to_the_newest_step_unless_it_never_changes() -> None:
    def looks(digests: tuple[int, int]) -> list[Snapshot]:
        return [
            snapshot(
                "worker:0",
                number,
                "config0.json",
                *[f"step_{step}.r0" for step in steps],
                digests={"config0.json": digest},
            )
            for number, steps, digest in ((1, (3,), digests[0]), (2, (4, 5), digests[1]))
        ]

    other = snapshot("worker:1", 1, "step_4.r1")
    assert chosen(*looks((7, 7)), other).step == (4,)
    assert chosen(*looks((7, 8)), other).rule == "beginning"


def test_without_a_common_step_the_gang_starts_from_the_beginning_with_a_warning() -> None:
    looks = (own("worker:0", 1, 12), own("worker:0", 2, 22), own("worker:1", 1, 10))
    choice = chosen(*looks)
    assert (choice.rule, choice.empty, choice.failure) == ("beginning", True, "")
    assert choice.warnings == (
        "The tasks' checkpoints have no step in common, so the gang starts from the beginning: "
        "worker:0 has 12, 22; worker:1 has 10.",
    )
    assert chosen(*looks, policy="strict").failure == choice.warnings[0]


def test_a_worker_that_never_wrote_receives_the_files_of_the_source_with_a_warning() -> None:
    tasks = (*TASKS, "worker:2", "ps:0")
    looks = (own("worker:0", 1, 10), own("worker:1", 1, 10))
    choice = chosen(*looks, tasks=tasks, optional={"ps:0"})
    assert numbers(choice)["worker:2"] == numbers(choice)["ps:0"] == ("worker:0", 1)
    assert choice.warnings == (
        "worker:2 has no checkpoints of its own and the files of worker:0 are restored there.",
    )
    assert list(choice.parts) == list(tasks)
    assert chosen(*looks, tasks=tasks[:2], optional={"ps:0"}).warnings == ()
    assert "worker:2" in chosen(*looks, tasks=tasks, policy="strict").failure


def keras(task: str, number: int, epoch: int) -> Snapshot:
    names = (f"{task[-1]}/latest.weights.h5", f"{task[-1]}/training_metadata.json")
    return snapshot(task, number, *names, steps={names[1]: (epoch, 0)})


def test_steps_in_the_metadata_of_a_library() -> None:
    looks = [keras("worker:0", 1, 3), keras("worker:0", 2, 4), keras("worker:1", 6, 3)]
    choice = chosen(*looks)
    assert (choice.rule, choice.step) == ("own", (3, 0))
    assert numbers(choice) == {"worker:0": ("worker:0", 1), "worker:1": ("worker:1", 6)}
    same = [replace(one, files=("w.h5", "m.json"), steps={"m.json": (4, 0)}) for one in looks]
    assert (chosen(*same).rule, chosen(*same).step) == ("chief", (4, 0))


def plain(task: str, number: int, round_: int) -> Snapshot:
    return snapshot(task, number, f"state{task[-1]}.bin", round=round_)


def test_a_file_with_its_step_in_metadata_belongs_to_the_newest_step() -> None:
    """Keras' BackupAndRestore beside a ModelCheckpoint with names of each worker's own."""

    def keras(task: str, number: int, epoch: int) -> Snapshot:
        rank = task[-1]
        names = [f"r{rank}/ckpt-{100 * one}.keras" for one in (epoch - 1, epoch)]
        names += [f"r{rank}/latest.weights.h5", f"r{rank}/training_metadata.json"]
        digests = {names[2]: epoch, names[3]: epoch + 100}
        steps = {names[3]: (epoch, 0)}
        return snapshot(task, number, *names, digests=digests, steps=steps)

    first = (keras("worker:0", 1, 4), keras("worker:1", 1, 4))
    choice = chosen(*first, keras("worker:0", 2, 5))
    assert choice.step == (400,)
    assert numbers(choice) == {"worker:0": ("worker:0", 1), "worker:1": ("worker:1", 1)}
    assert chosen(keras("worker:0", 2, 5), first[1]).rule == "beginning"


def test_files_without_steps_are_restored_from_the_newest_common_round() -> None:
    looks = (
        plain("worker:0", 1, 1),
        plain("worker:0", 2, 2),
        plain("worker:0", 3, 2),
        plain("worker:0", 4, 3),
        plain("worker:1", 1, 1),
        plain("worker:1", 2, 2),
    )
    choice = chosen(*looks)
    assert (choice.rule, choice.round, choice.step) == ("round", 2, None)
    assert numbers(choice) == {"worker:0": ("worker:0", 2), "worker:1": ("worker:1", 2)}
    assert "newest common snapshot round" in choice.warnings[0]
    assert "round 2" in choice.sentence()
    assert chosen(*looks, policy="strict").failure
    # worker:1 answered round 3 without a new snapshot.
    choice = chosen(*looks, completed={"worker:1": 3})
    assert (choice.round, numbers(choice)["worker:0"]) == (3, ("worker:0", 4))
    assert numbers(choice)["worker:1"] == ("worker:1", 2)


def test_without_a_round_the_gang_starts_from_the_beginning_with_a_warning() -> None:
    choice = chosen(plain("worker:0", 1, 0), plain("worker:1", 1, 0))
    assert (choice.rule, choice.empty) == ("beginning", True)
    assert "carry no steps" in choice.warnings[0]


def test_a_single_writer_restores_its_own_files() -> None:
    choice = chosen(plain("worker:0", 1, 0), policy="own", tasks=("worker:0", "worker:1"))
    assert (choice.rule, choice.step, choice.round) == ("own", None, None)
    assert numbers(choice) == {"worker:0": ("worker:0", 1), "worker:1": ("worker:0", 1)}
    assert len(choice.warnings) == 1
    assert "worker:1 has no checkpoints of its own" in choice.warnings[0]


def test_policies_force_a_rule() -> None:
    same = (tf("worker:0", 1, 10, 11), tf("worker:1", 1, 9, 10))
    choice = chosen(*same, policy="own")
    assert (choice.rule, choice.step) == ("own", (10,))
    assert numbers(choice)["worker:1"] == ("worker:1", 1)
    different = (own("worker:0", 1, 10), own("worker:1", 1, 9))
    choice = chosen(*different, policy="chief")
    assert (choice.rule, numbers(choice)["worker:1"]) == ("chief", ("worker:0", 1))


def test_a_snapshot_keeps_the_limit_up_to_which_it_was_restored() -> None:
    before = replace(own("worker:0", 3, 10, 11, 12), until=(10,))
    choice = chosen(before, own("worker:1", 5, 10, 11))
    assert (choice.step, choice.parts["worker:0"].left_out) == (
        (10,),
        ("rank0_step_11.pt", "rank0_step_12.pt"),
    )


def test_progress_with_and_without_steps() -> None:
    ten = chosen(tf("worker:0", 1, 10))
    eleven = chosen(tf("worker:0", 2, 11))
    assert progress(eleven, ten) is Progress.STEP
    assert progress(ten, eleven) is progress(ten, ten) is Progress.NONE
    assert progress(ten, None) is progress(ten, RestorePoint()) is Progress.STEP
    assert (
        progress(RestorePoint(), None) is progress(RestorePoint("beginning"), ten) is Progress.NONE
    )
    first = chosen(snapshot("worker:0", 1, "checkpoint.pt"))
    second = chosen(snapshot("worker:0", 2, "checkpoint.pt"))
    assert progress(first, None) is progress(second, first) is Progress.SNAPSHOT
    assert progress(second, second) is Progress.NONE


def test_a_malformed_restore_point_is_refused() -> None:
    wrong: list[dict[str, Any]] = [{"parts": {"worker:0": {}}}, {"parts": 3}, {"step": 4}]
    for data in wrong:
        with pytest.raises(ValueError, match=r"^(parts|step)"):
            from_json(RestorePoint, data)
