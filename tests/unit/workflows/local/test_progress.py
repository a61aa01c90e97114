"""Azkaban's rules for a flow, on the pure state: starts, skipped nodes, the end.

What is expected here was read in ``azkaban.execapp.FlowRunner`` and its tests.
"""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from submarine_workflows.formats import read_workflow
from submarine_workflows.local.progress import Progress
from submarine_workflows.model import check
from submarine_workflows.runs import FailureAction, Status
from tests.random_examples import examples

F, S, K = Status.FAILED, Status.SUCCEEDED, Status.KILLED
DIAMOND = """
- {name: a, type: noop}
- {name: b, type: noop, dependsOn: [a]}
- {name: c, type: noop, dependsOn: [a]}
- {name: d, type: noop, dependsOn: [b, c]}
"""


def progress(nodes: str, **options: Any) -> Progress:
    text = "nodes:\n" + textwrap.indent(textwrap.dedent(nodes).strip("\n"), "  ")
    workflow = read_workflow(text, "flow")
    assert check(workflow) == []
    return Progress(workflow, **options)


def play(found: Progress, ends: dict[str, Any] | None = None) -> dict[str, str]:
    """Run it in rounds; a node's end is a status or a dict of outputs, by default a success."""
    ready = found.advance()
    rounds = 0
    while ready:
        rounds += 1
        assert rounds < 1000
        for step in ready:
            found.started(step)
            end = (ends or {}).get(step.path, S)
            if isinstance(end, dict):
                found.ended(step, S, end)
            else:
                found.ended(step, end)
        ready = found.advance()
    assert found.root.status.ended
    return {path or "ROOT": step.status.value for path, step in found.steps.items()}


def test_branches_run_beside_each_other_and_the_last_waits_for_all():
    found = progress(DIAMOND)
    assert [step.path for step in found.advance()] == ["a"]
    found.ended(found.steps["a"], S)
    assert [step.path for step in found.advance()] == ["b", "c"]
    found.ended(found.steps["b"], S)
    assert found.advance() == []
    found.ended(found.steps["c"], S)
    assert [step.path for step in found.advance()] == ["d"]


@pytest.mark.parametrize(
    ("action", "c", "d", "e", "root"),
    [
        (FailureAction.FINISH_CURRENT, "SUCCEEDED", "CANCELLED", "CANCELLED", "FAILED"),
        (FailureAction.FINISH_POSSIBLE, "SUCCEEDED", "CANCELLED", "SUCCEEDED", "FAILED"),
        (FailureAction.CANCEL, "SUCCEEDED", "CANCELLED", "CANCELLED", "KILLED"),
    ],
)
def test_what_a_failure_means_for_the_others(action, c, d, e, root):
    found = progress(DIAMOND + "- {name: e, type: noop, dependsOn: [c]}", action=action)
    [a] = found.advance()
    found.ended(a, S)
    b, running = found.advance()
    found.started(running)
    found.ended(b, F)
    assert found.killed is (action is FailureAction.CANCEL)
    found.ended(running, S)  # it was running: it ends in its own way
    ended = play(found)
    assert (ended["c"], ended["d"], ended["e"], ended["ROOT"]) == (c, d, e, root)


@pytest.mark.parametrize(
    ("condition", "ends", "status", "root"),
    [
        ("", {"a": F}, "CANCELLED", "FAILED"),
        ("one_failed", {"a": F}, "SUCCEEDED", "SUCCEEDED"),
        ("all_failed", {"a": F, "b": F}, "SUCCEEDED", "SUCCEEDED"),
        ("all_failed", {"a": F}, "CANCELLED", "KILLED"),
        ("all_done", {"a": F}, "SUCCEEDED", "SUCCEEDED"),
        ("one_success_all_done", {"a": F}, "SUCCEEDED", "SUCCEEDED"),
        ("one_success", {"a": F, "b": F}, "CANCELLED", "KILLED"),
        ("${a:rows} > 5", {"a": {"rows": "10"}}, "SUCCEEDED", "SUCCEEDED"),
        ("${a:rows} > 50", {"a": {"rows": "10"}}, "CANCELLED", "KILLED"),
    ],
)
def test_conditions_and_what_a_false_one_makes_of_the_flow(condition, ends, status, root):
    found = progress(
        f"""
        - {{name: a, type: noop}}
        - {{name: b, type: noop}}
        - name: c
          type: noop
          dependsOn: [a, b]
          condition: "{condition}"
        """
    )
    ended = play(found, ends)
    assert (ended["c"], ended["ROOT"]) == (status, root)


def test_one_success_does_not_wait_for_the_others():
    found = progress(
        """
        - {name: a, type: noop}
        - {name: b, type: noop}
        - {name: c, type: noop, dependsOn: [a, b], condition: one_success}
        """
    )
    a, b = found.advance()
    found.started(b)
    found.ended(a, S)
    [c] = found.advance()
    assert c.path == "c"
    found.ended(c, S)
    assert found.advance() == []
    assert not found.root.status.ended, "b still runs"
    found.ended(b, S)
    found.advance()
    assert found.root.status is S


EMBEDDED = """
- {name: first, type: noop}
- name: inner
  type: flow
  dependsOn: [first]
  nodes:
    - {name: a, type: noop}
    - {name: b, type: noop, dependsOn: [a]}
- {name: last, type: noop, dependsOn: [inner], condition: "${inner:rows} > 1"}
"""


def test_an_embedded_flow_puts_out_what_its_last_nodes_do():
    ended = play(progress(EMBEDDED), {"inner:b": {"rows": "3"}})
    assert set(ended.values()) == {"SUCCEEDED"}


def test_a_failure_within_a_flow_is_a_failure_of_the_whole():
    ended = play(progress(EMBEDDED), {"inner:a": F})
    assert ended == {
        "ROOT": "FAILED", "first": "SUCCEEDED", "inner": "FAILED", "inner:a": "FAILED",
        "inner:b": "CANCELLED", "last": "CANCELLED",
    }  # fmt: skip


def test_a_disabled_node_is_skipped_in_its_turn_and_counts_as_a_success():
    found = progress(DIAMOND, disabled=["b"])
    assert found.steps["b"].status is Status.READY
    assert play(found) == {
        "ROOT": "SUCCEEDED", "a": "SUCCEEDED", "b": "SKIPPED", "c": "SUCCEEDED", "d": "SUCCEEDED",
    }  # fmt: skip


def test_a_disabled_flow_is_skipped_with_all_that_is_in_it():
    ended = play(progress(EMBEDDED.partition("- {name: last")[0], disabled=["inner"]))
    assert (ended["inner"], ended["inner:a"], ended["ROOT"]) == ("SKIPPED", "SKIPPED", "SUCCEEDED")


def test_a_killed_run_starts_nothing_more():
    found = progress(DIAMOND)
    [a] = found.advance()
    found.started(a)
    found.kill()
    found.ended(a, K)
    assert found.advance() == []
    assert {step.status.value for step in found.steps.values()} == {"KILLED", "CANCELLED"}
    assert found.root.status is K


def test_what_failed_and_does_not_matter_counts_as_a_success():
    ended = play(progress(DIAMOND), {"b": Status.FAILED_SUCCEEDED})
    assert (ended["d"], ended["ROOT"]) == ("SUCCEEDED", "SUCCEEDED")


def test_what_was_done_well_is_not_done_again():
    found = progress(EMBEDDED)
    found.restore(
        {
            "first": (S, {}),
            "inner": (F, {}),
            "inner:a": (S, {"rows": "9"}),
            "inner:b": (F, {}),
            "gone": (S, {}),
        }
    )
    assert [step.path for step in found.advance()] == ["inner:b"]
    found.ended(found.steps["inner:b"], S, {"rows": "3"})
    assert [step.path for step in found.advance()] == ["last"]


@settings(deadline=None, max_examples=examples(60))
@given(st.data())
def test_every_flow_comes_to_an_end_in_which_every_node_has_ended(data):
    count = data.draw(st.integers(1, 8))
    words = ["", "all_done", "all_failed", "one_success", "one_failed", "one_failed_all_done"]
    lines = []
    for number in range(count):
        before = data.draw(st.lists(st.integers(0, number - 1), max_size=3)) if number else []
        names = ", ".join(f"n{one}" for one in set(before))
        condition = data.draw(st.sampled_from(words)) if before else ""
        lines.append(
            f"- {{name: n{number}, type: noop, dependsOn: [{names}], condition: '{condition}'}}"
        )
    found = progress("\n".join(lines), action=data.draw(st.sampled_from(list(FailureAction))))
    ends = {f"n{n}": data.draw(st.sampled_from([S, F, K])) for n in range(count)}
    assert all(Status(status).ended for status in play(found, ends).values())
