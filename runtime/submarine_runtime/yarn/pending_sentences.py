"""Amounts of memory, vcores and GPUs in words, and who holds them; what is localizing; pure."""

from __future__ import annotations

from typing import Iterator, Sequence

from submarine_runtime.yarn.capacity import Holder, Size

#: So many holders are named; the others are counted.
_NAMED = 3


def free_words(free: Size, total: Size, kind: str) -> str:
    """``2 of 4 GPUs free``."""
    have, of = getattr(free, kind), getattr(total, kind)
    if kind == "gpus":
        return f"{have} of {of} GPU{'' if of == 1 else 's'} free"
    unit = "MiB" if kind == "memory" else "vcores"
    return f"{have} of {of} {unit} free"


def words(amount: Size, kinds: Sequence[str]) -> str:
    """``2 GPUs and 4096 MiB``, only what ``kinds`` names."""
    return " and ".join(_parts(amount, kinds))


def _parts(amount: Size, kinds: Sequence[str]) -> Iterator[str]:
    for kind in kinds:
        value = getattr(amount, kind)
        if kind == "memory":
            yield f"{value} MiB"
        else:
            one = "GPU" if kind == "gpus" else "vcore"
            yield f"{value} {one}{'' if value == 1 else 's'}"


def held(apps: Sequence[Holder], kind: str, own: str) -> str:
    """``, job x holds 2, job y holds 1``; empty where nobody is known to hold any.

    Parameters
    ----------
    own
        Id of the application that waits.
    """
    amounts = [(getattr(app.used, kind), getattr(app.reserved, kind), app) for app in apps]
    holding = sorted((one for one in amounts if one[0] or one[1]), key=lambda one: -sum(one[:2]))
    parts = []
    for used, kept, app in holding[:_NAMED]:
        who = "this job" if app.id == own else app.who
        if used:
            parts.append(f"{who} holds {_amount(used, kind)}")
        elif app.id != own:
            parts.append(f"{_amount(kept, kind)} {'is' if kept == 1 else 'are'} kept for {who}")
    more = holding[_NAMED:]
    if more:
        rest = _amount(sum(used + kept for used, kept, _ in more), kind)
        parts.append(f"{'another holds' if len(more) == 1 else f'{len(more)} others hold'} {rest}")
    return "".join(f", {part}" for part in parts)


def _amount(value: int, kind: str) -> str:
    return f"{value} MiB" if kind == "memory" else str(value)


def localizing(nodes: Sequence[str], seconds: float = 0.0, what: str = "", ready: str = "") -> str:
    """``localizing on node-7 for 40 s: Python environment (1.4 GB); 3 of 4 tasks are ready``.

    Parameters
    ----------
    seconds
        Since when. Shown in steps that grow, because each new sentence is a line of ``run --wait``.
    what
        The files that YARN brings to the node, with their size.
    ready
        The tasks that have their files already.
    """
    hosts = list(dict.fromkeys(node.partition(":")[0] for node in nodes if node))
    where = ""
    if hosts:
        where = " on " + (
            ", ".join(hosts[:_NAMED]) if len(hosts) <= _NAMED else f"{len(hosts)} nodes"
        )
    words = f"localizing{where}{_for(int(seconds))}"
    return words + (f": {what}" if what else "") + (f"; {ready}" if ready else "")


def _for(seconds: int) -> str:
    if seconds < 10:
        return ""
    if seconds < 60:
        return f" for {seconds // 10 * 10} s"
    minutes, rest = divmod(seconds, 60)
    half = " 30 s" if rest >= 30 and minutes < 10 else ""
    return f" for {minutes} min{half}"


def counted(count: int, what: str) -> str:
    """``1 job waits``, ``3 jobs wait``."""
    return f"1 {what} waits" if count == 1 else f"{count} {what}s wait"
