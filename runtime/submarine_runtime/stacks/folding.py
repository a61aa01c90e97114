"""Fold equal stacks of a job's processes, and find the processes that the others wait for.

A process that hangs is found among the stacks of all: the others are in a collective operation of
a library (``_COLLECTIVE``) or in a call that may contain one (``_MAYBE``); most are at the same
place and one is not; or the others wait for a connection. Whether a wait is a hang depends on the
activity of the process that is waited for: while it computes, the others wait with good reason.
"""

from __future__ import annotations

import re
from typing import Any, Mapping, NamedTuple, Sequence

from submarine_runtime.translation import _

#: Files of libraries in which a process waits for its peers.
_COLLECTIVE = re.compile(
    r"/torch/distributed/|/torch/nn/parallel/distributed\.py|/horovod/|/deepspeed/comm/"
    r"|/paddle/distributed/|/jax/(_src/)?(distributed|experimental/multihost_utils)"
    r"|/xgboost/(collective|rabit|tracker)\.py|/mxnet/kvstore/|/tensorflow/python/distribute/"
)
#: Calls that contain collective operations in native code, or wait for a device that does.
_MAYBE = re.compile(
    r"/torch/autograd/(graph|__init__)\.py|/torch/_tensor\.py|/torch/cuda/|/xgboost/core\.py"
    r"|/lightgbm/basic\.py|/tensorflow/python/eager/|/jax/_src/(array|api)\.py"
)
#: Functions that wrap others: their names say nothing.
_WRAPPERS = frozenset({"wrapper", "inner", "_call_impl", "_wrapped_call_impl", "decorate_context"})
#: Names of classes, which faulthandler does not write.
_CLASSES = {"torch/utils/data/dataloader.py": "DataLoader"}
MAX_GROUPS = 64
#: Ranks or tasks that a sentence names, and groups.
_MAX_NAMED = 8
_MAX_SHOWN = 6
#: Groups and frames of each in an event.
_EVENT_GROUPS, _EVENT_FRAMES = 8, 12
#: Seconds: a process is asked about again not sooner.
_AGAIN = 5.0

Entry = Mapping[str, Any]


class Report(NamedTuple):
    """What the stacks of a job say.

    Attributes
    ----------
    stalled
        Whether a process has been without activity for too long, and no active one explains it.
    sentence
        For the event; without the time that a process was quiet if that is not known.
    tasks
        Names of the tasks that the others wait for; else of those without activity.
    groups
        ``who`` (``ranks 0-2``), ``label``, and ``frames``, ``threads`` or ``note`` of the first.
    waits_for
        The processes that the others wait for, as in ``who``; empty: none was found.
    again
        Seconds until a process that the others wait for can have been quiet for too long.
    """

    stalled: bool
    sentence: str
    tasks: list[str]
    groups: list[dict[str, Any]]
    waits_for: str
    again: float

    def to_json(self) -> dict[str, Any]:
        """Return the fields for clients."""
        return {"sentence": self.sentence, "groups": self.groups, "waits_for": self.waits_for}

    def summary(self) -> dict[str, Any]:
        """Return the fields for an event: few groups, and few frames of the main thread."""
        groups = [
            {
                **{key: value for key, value in group.items() if key != "threads"},
                "frames": group.get("frames", [])[:_EVENT_FRAMES],
            }
            for group in self.groups[:_EVENT_GROUPS]
        ]
        return {"groups": groups, "waits_for": self.waits_for}


def report(entries: Sequence[Entry], limit: float = 0.0) -> Report:
    """Return the report on the stacks of all processes.

    Parameters
    ----------
    entries
        See ``capture.take``; with ``task``, ``rank`` (None: not in the collective), ``quiet``
        (seconds without activity) and, for a program that has ended, ``ended``.
    limit
        Seconds of ``--stall``; 0: only describe.
    """
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(_label(entry), []).append(entry)
    training = [entry for entry in entries if entry.get("rank") is not None or len(entries) == 1]
    suspects = _awaited(training)
    quiet = [one for one in training if limit and _quiet(one) >= limit and not one.get("ended")]
    hung = [one for one in suspects if one.get("ended") or _quiet(one) >= limit]
    stalled = bool(quiet) and (not suspects or bool(hung))
    named = (hung or suspects) if limit else suspects
    parts = []
    if stalled:
        parts.append(
            _("No log, progress, CPU or GPU use of {who} for {time}.").format(
                who=names([one for one in hung if one in quiet] or quiet, tasks=True),
                time=duration(max(map(_quiet, quiet))),
            )
        )
    ordered = sorted(groups.items(), key=lambda item: not any(one in named for one in item[1]))
    shown = [f"{names(members)}: {label}" for label, members in ordered]
    more = len(shown) - _MAX_SHOWN
    parts.append("; ".join(shown[:_MAX_SHOWN]) + (f"; +{more}." if more > 0 else "."))
    awaited = names(named) if named and len(entries) > 1 else ""
    if awaited:
        parts.append(_("The others wait for {who}.").format(who=names(named, tasks=True)))
    return Report(
        stalled,
        " ".join(parts)[:1900],
        list(dict.fromkeys(str(one["task"]) for one in (named or quiet))),
        [_group(label, members) for label, members in ordered[:MAX_GROUPS]],
        awaited,
        max([_AGAIN, *(limit - _quiet(one) for one in suspects)]),
    )


def _quiet(entry: Entry) -> float:
    return float(entry.get("quiet") or 0.0)


def duration(seconds: float) -> str:
    """Return ``90 s`` or ``10 min``."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def names(entries: Sequence[Entry], tasks: bool = False) -> str:
    """Return ``ranks 0-2``, or names of tasks; with ``tasks`` the ranks and their tasks."""
    ranks = sorted(int(one["rank"]) for one in entries if one.get("rank") is not None)
    words = list(dict.fromkeys(str(one["task"]) for one in entries if one.get("rank") is None))
    if ranks:
        word = "rank" if len(ranks) == 1 else "ranks"
        text = f"{word} {_ranges(ranks)}"
        of = list(dict.fromkeys(str(one["task"]) for one in entries if one.get("rank") is not None))
        if tasks:
            text += f" ({', '.join(of[:_MAX_NAMED])}{', ...' if len(of) > _MAX_NAMED else ''})"
        words.insert(0, text)
    return ", ".join(words[:_MAX_NAMED]) + (", ..." if len(words) > _MAX_NAMED else "")


def _ranges(numbers: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [str(low) if low == high else f"{low}-{high}" for low, high in runs]
    return ", ".join(texts[:_MAX_NAMED]) + (", ..." if len(texts) > _MAX_NAMED else "")


def _awaited(entries: Sequence[Entry]) -> list[Entry]:
    """Return the processes that the others wait for; empty: unknown."""
    if len(entries) < 2:
        return []
    # A process that has ended or is stopped answers no other one.
    gone = [one for one in entries if one.get("ended") or one.get("state") in ("T", "t", "D")]
    if gone and len(gone) < len(entries):
        return gone
    certain = [one for one in entries if _call(one, _COLLECTIVE)]
    possible = [one for one in entries if one in certain or _call(one, _MAYBE)]
    for waiting in (possible, certain) if certain else (possible,):
        rest = [one for one in entries if one not in waiting]
        if waiting and rest:
            return rest
    labels = [_label(one) for one in entries]
    common = max(labels, key=labels.count)
    if labels.count(common) * 2 > len(entries):
        return [one for one, label in zip(entries, labels) if label != common]
    if certain:
        return []
    rest = [one for one in entries if not one.get("connected")]
    return rest if len(rest) < len(entries) else []


def _call(entry: Entry, files: re.Pattern[str]) -> str:
    """Return the outermost function of such a file that the process is in; empty: none."""
    found = [f for f in entry.get("frames") or () if files.search("/" + f["file"])]
    plain = [f for f in found if f["function"] not in _WRAPPERS]
    return str((plain or found)[-1]["function"]) if found else ""


def _label(entry: Entry) -> str:
    """Return ``all_reduce, cell 7 line 15``: the call of the program that the process is in."""
    frames = entry.get("frames") or ()
    if entry.get("ended"):
        return _("its program has ended")
    if not frames:
        return str(entry.get("note") or _("no stack"))
    own = next((i for i, frame in enumerate(frames) if frame.get("own")), None)
    called = _call(entry, _COLLECTIVE)
    if not called and own is None:
        called = _function(frames[0])
    elif not called and own:
        below = [f for f in frames[:own] if f["function"] not in _WRAPPERS] or frames[:own]
        called = _function(below[-1])
    if own is None:
        return called
    frame = frames[own]
    place = frame.get("cell") or f"{frame['file']} line {frame['line']}"
    return f"{called or frame.get('code') or frame['function']}, {place}"


def _function(frame: Mapping[str, Any]) -> str:
    file, function = str(frame["file"]), str(frame["function"])
    for end, name in _CLASSES.items():
        if file.endswith(end):
            return f"{name}.{function}"
    return f"{file.rpartition('/')[2].rpartition('.')[0]}.{function}".lstrip(".")


def _group(label: str, members: Sequence[Entry]) -> dict[str, Any]:
    first = members[0]
    kept = {key: first[key] for key in ("frames", "threads", "note") if first.get(key)}
    tasks = list(dict.fromkeys(str(one["task"]) for one in members))
    return {"who": names(members), "tasks": tasks[:MAX_GROUPS], "label": label, **kept}
