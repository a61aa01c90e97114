"""Collecting: which cell is which, what replaces it, its order, its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from submarine_jobs.program import (
    Cell,
    CellCollection,
    CellState,
    DocumentCell,
    IPythonSyntaxError,
    NotebookDocument,
    build_bundle,
    join_labels,
)
from submarine_jobs.program.collection import Change


def cell(text: str, cell_id: str | None = None, **more: object) -> Cell:
    return replace(Cell(cell_id, text), **more)  # type: ignore[arg-type]


def document(
    *sources: str | tuple[str, str], modified: float = 0.0, marked: bool = True
) -> NotebookDocument:
    cells = []
    for number, item in enumerate(sources, start=1):
        cell_id, source = item if isinstance(item, tuple) else (None, item)
        text = f"%%submarine\n{source}" if marked and not source.startswith("#-") else source
        cells.append(DocumentCell(cell_id, text, f"#{number}"))
    return NotebookDocument("n.ipynb", tuple(cells), b"", modified)


def texts(collection: CellCollection) -> list[str]:
    return [item.source for item in collection.cells()]


def test_running_a_cell_again_replaces_it_by_id() -> None:
    collection = CellCollection()
    assert collection.add(cell("a = 1", "x")).change is Change.ADDED
    assert collection.add(cell("b = 1", "y")).change is Change.ADDED
    assert collection.add(cell("a = 2", "x")).change is Change.REPLACED
    assert collection.add(cell("a = 2\n\n", "x")).change is Change.UNCHANGED
    assert texts(collection) == ["a = 2", "b = 1"]


def test_cells_with_ids_and_equal_text_are_two_cells() -> None:
    collection = CellCollection()
    collection.add(cell("train()", "x"))
    collection.add(cell("train()", "y"))
    assert len(collection) == 2


def test_without_ids_equal_text_is_the_same_cell() -> None:
    collection = CellCollection()
    collection.add(cell("a = 1"))
    assert collection.add(cell("a = 1", label="[9]")).change is Change.UNCHANGED
    collection.add(cell("a = 2"))
    assert texts(collection) == ["a = 1", "a = 2"]
    assert collection.cells()[0].label == "[9]"


def test_the_same_text_in_another_file_is_another_cell() -> None:
    collection = CellCollection()
    collection.add(cell("a = 1"))
    collection.add(cell("a = 1", filename="model.py"))
    assert len(collection) == 2


def test_without_ids_an_edited_cell_is_replaced_once_the_document_is_saved() -> None:
    collection = CellCollection()
    for text in ("a", "b", "c"):
        collection.add(cell(text))
    collection.follow(document("a", "b", "c"))
    collection.add(cell("b2"))
    assert texts(collection) == ["a", "b", "c", "b2"]
    gone = collection.follow(document("a", "b2", "c"))
    assert [item.source for item in gone] == ["b"]
    assert texts(collection) == ["a", "b2", "c"]


def test_without_ids_a_cell_edited_and_saved_before_it_ran_is_replaced_in_place() -> None:
    collection = CellCollection()
    for text in ("a", "b", "c"):
        collection.add(cell(text), ran_at=10)
    collection.follow(document("a", "b", "c"))
    assert collection.follow(document("a", "b2", "c", modified=20)) == []
    assert [item.source for item in collection.changed_since_run()] == ["b"]
    assert collection.add(cell("b2"), ran_at=30).change is Change.REPLACED
    assert texts(collection) == ["a", "b2", "c"]
    assert collection.changed_since_run() == []


def test_without_ids_a_deleted_cell_goes_and_an_unsaved_one_stays() -> None:
    collection = CellCollection()
    for text in ("a", "b", "c", "unsaved"):
        collection.add(cell(text))
    collection.follow(document("a", "b", "c"))
    assert [item.source for item in collection.follow(document("a", "c"))] == ["b"]
    assert texts(collection) == ["a", "c", "unsaved"]


def test_a_cell_whose_mark_is_taken_off_goes_when_it_has_no_id() -> None:
    collection = CellCollection()
    collection.add(cell("a"))
    collection.add(cell("b"))
    collection.follow(document("a", "b"))
    collection.follow(document("a", "#-b"))
    assert texts(collection) == ["a"]


def test_by_id_deleted_goes_and_never_saved_stays() -> None:
    collection = CellCollection()
    for text in ("a", "b", "new"):
        collection.add(cell(text, text))
    collection.follow(document(("a", "a"), ("b", "b")))
    collection.follow(document(("a", "a")))
    assert texts(collection) == ["a", "new"]
    assert [c.source for c in collection.remove(["new", "nobody"])] == ["new"]
    assert collection.clear() == 1
    assert len(collection) == 0


def test_ids_that_the_document_does_not_know_are_ordered_by_source() -> None:
    collection = CellCollection()
    collection.add(cell("b", "vscode:2"))
    collection.add(cell("a", "vscode:1"))
    collection.follow(document(("p", "a"), ("q", "b")))
    assert texts(collection) == ["a", "b"]


def test_another_document_deletes_nothing() -> None:
    collection = CellCollection()
    collection.add(cell("a", "a"))
    collection.add(cell("b"))
    collection.follow(document(("a", "a"), "b"))
    assert collection.follow(replace(document(("z", "z")), path="other.ipynb")) == []
    assert texts(collection) == ["a", "b"]


def test_an_unreadable_document_changes_nothing() -> None:
    collection = CellCollection()
    collection.add(cell("b", "b"))
    collection.add(cell("a", "a"))
    collection.follow(document(("a", "a"), ("b", "b")))
    assert collection.follow(None) == []
    assert texts(collection) == ["a", "b"]


def test_listing_tells_edited_unsaved_and_current() -> None:
    collection = CellCollection()
    collection.add(cell("\na = 1\nb = 2", "a"), ran_at=10)
    assert collection.listing()[0].state is CellState.NO_DOCUMENT
    assert (collection.listing()[0].lines, collection.listing()[0].first_code) == (3, "a = 1")
    collection.follow(document(("a", "\na = 1\nb = 2"), ("z", "zz"), modified=20))
    assert collection.listing()[0].state is CellState.CURRENT
    assert [c.label for c in collection.not_run()] == ["#2"]
    collection.follow(document(("a", "other"), modified=20))
    assert collection.listing()[0].state is CellState.EDITED
    collection.add(cell("newest", "a"), ran_at=30)
    assert collection.listing()[0].state is CellState.UNSAVED


def test_a_refused_cell_leaves_the_collected_one_as_it_was() -> None:
    collection = CellCollection()
    collection.add(cell("a = 1", "x"))
    with pytest.raises(IPythonSyntaxError, match=r"Cell \[7\], line 3"):
        collection.add(cell("a = 1\nb = !ls", "x", label="[7]"))
    assert texts(collection) == ["a = 1"]


def test_what_is_left_out_is_said_with_cell_and_line() -> None:
    added = CellCollection().add(cell("import a\n%matplotlib inline", "x", label="[4]"))
    (notice,) = added.notices
    assert notice.message.startswith("Cell [4], line 3:")
    assert "%matplotlib inline" in notice.message
    assert (notice.label, notice.line) == ("[4]", 3)


IDS = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8, unique=True)


@given(IDS, st.data())
def test_with_a_document_the_order_of_execution_does_not_matter(
    ids: list[str], data: st.DataObject
) -> None:
    saved = document(*[(name, f"v_{name} = 1") for name in ids])
    bundles = []
    for _ in range(2):
        collection = CellCollection()
        runs = data.draw(st.permutations(ids + ids[:2]))
        moment = data.draw(st.integers(0, len(runs)))
        for number, name in enumerate(runs):
            if number == moment:
                collection.follow(saved)
            collection.add(cell(f"v_{name} = 1", name))
        collection.follow(saved)
        bundles.append(build_bundle(collection.cells()).zip_bytes())
    assert bundles[0] == bundles[1]


@given(IDS, st.booleans(), st.data())
def test_the_documents_order_is_the_programs_order(
    ids: list[str], with_ids: bool, data: st.DataObject
) -> None:
    collection = CellCollection()
    for name in data.draw(st.permutations(ids)):
        collection.add(cell(name, name if with_ids else None))
    order = data.draw(st.permutations(ids))
    saved = [(n, n) if with_ids else n for n in order]
    assert collection.follow(document(*saved)) == []
    assert texts(collection) == order


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["x=1", "x=2", "y=1"]))))
def test_collecting_again_is_idempotent_and_keeps_the_last_version(
    runs: Sequence[tuple[str, str]],
) -> None:
    collection = CellCollection()
    for name, text in runs:
        collection.add(cell(text, name))
    before = collection.cells()
    for item in before:
        assert collection.add(item).change is Change.UNCHANGED
    assert collection.cells() == before
    assert {item.cell_id: item.source for item in before} == dict(runs)
    assert [item.cell_id for item in before] == list(dict.fromkeys(name for name, _ in runs))


@given(IDS, IDS, IDS, st.booleans())
def test_following_any_documents_keeps_places_apart_and_loses_nothing_silently(
    run: list[str], first: list[str], second: list[str], with_ids: bool
) -> None:
    collection = CellCollection()
    for name in run:
        collection.add(cell(name, name if with_ids else None))
    for order in (first, second):
        before = set(texts(collection))
        gone = collection.follow(document(*[(n, n) if with_ids else n for n in order]))
        assert before == set(texts(collection)) | {item.source for item in gone}
        assert not {item.source for item in gone} & set(order)
        found = [text for text in texts(collection) if text in order]
        assert found == [name for name in order if name in found]


def test_a_document_written_anew_with_other_ids_holds_the_same_cells() -> None:
    """Checking out another version, or a tool that writes notebooks from text, does that."""
    collection = CellCollection()
    collection.follow(document(("a1", "x = 1"), ("a2", "y = 2")))
    collection.add(cell("x = 1", "a1"))
    collection.add(cell("y = 2", "a2"))
    collection.follow(document(("b1", "x = 1"), ("b2", "y = 2")))
    assert collection.add(cell("x = 10", "b1")).change is Change.REPLACED
    assert texts(collection) == ["x = 10", "y = 2"]


def test_a_deleted_cell_is_not_asked_for_while_the_document_is_not_saved() -> None:
    collection = CellCollection()
    collection.follow(document(("a1", "x = 1"), ("a2", "y = 2")))
    collection.add(cell("x = 1", "a1"))
    collection.remove(["a1"])
    assert [c.cell_id for c in collection.not_run()] == ["a2"]
    collection.add(cell("x = 1", "a1"))
    assert [c.cell_id for c in collection.not_run()] == ["a2"]


def test_what_runs_a_job_or_is_empty_is_no_cell_that_was_not_run() -> None:
    collection = CellCollection()
    collection.follow(
        document(("a", "%%submarine run x --wait\nx = 1"), ("b", "%%submarine\n"), marked=False)
    )
    assert collection.not_run() == []


def test_labels_in_a_sentence() -> None:
    assert join_labels([]) == ""
    assert join_labels(["[1]"]) == "[1]"
    assert join_labels(["[1]", "[2]", "#3"]) == "[1], [2] and #3"
    assert join_labels([f"[{n}]" for n in range(9)], maximum=3) == "[0], [1] and 7 more"
