"""A publication to a store that fails for good from one change on, as for a killed process."""

from __future__ import annotations

from typing import Any

from submarine_jobs.trained_models.directories import (
    ModelDraft,
    directories_of,
    published_manifest,
)
from submarine_runtime.publication import MODEL_MANIFEST
from submarine_runtime.storage import Store

_CHANGES = ("publish", "put", "move", "delete", "make_directory")


class KilledError(BaseException):
    """The process that publishes has ended."""


class Interruption:
    """Ends all changes of a store from number ``step`` on: 2n before change n, 2n + 1 after it."""

    def __init__(self, store: Store, step: int) -> None:
        self._step, self._count = step, 0
        for name in _CHANGES:
            setattr(store, name, self._wrapped(getattr(store, name)))

    def _wrapped(self, original: Any) -> Any:
        def change(*arguments: Any, **options: Any) -> Any:
            number, self._count = self._count, self._count + 1
            if self._step <= 2 * number:
                raise KilledError
            result = original(*arguments, **options)
            if self._step == 2 * number + 1:
                raise KilledError
            return result

        return change


def publish(store: Store, target: str, word: str, *, replace: bool) -> None:
    """Publish a model of two files with this word in them."""
    draft = ModelDraft(store, target)
    for name in ("saved model.pb", "variables/data"):
        data = f"{word} of {name}".encode()
        draft.add(name, len(data), lambda data=data: [data])  # type: ignore[misc]
    draft.publish({"job": word, "version": ""}, replace=replace)


def word_of(store: Store, target: str) -> str:
    """Read a version as the documented reader does; its files must be those of one model."""
    found = published_manifest(store, target)
    if found is None:
        return ""
    directory, manifest = found
    word = str(manifest["job"])
    for file in manifest["files"]:
        assert store.read(f"{directory}/{file['path']}") == f"{word} of {file['path']}".encode()
    # A reader of the directory itself finds the same, or nothing.
    assert directory in directories_of(target)
    return word


def check_each_interruption(made: Any, place: str, *, replaced: bool) -> int:
    """Interrupt a publication at each step; return the number of steps.

    Parameters
    ----------
    made
        Returns a new client of the store.
    place
        Directory of the models.
    """
    before = "old" if replaced else ""
    words = []
    for step in range(100):
        store, target = made(), f"{place}/{step}/7"
        if replaced:
            publish(store, target, "old", replace=False)
        interrupted = made()
        Interruption(interrupted, step)
        try:
            publish(interrupted, target, "new", replace=replaced)
            ended = True
        except KilledError:
            ended = False
        words.append(word_of(store, target))
        if words[-1] == "new" and not replaced:
            # Complete: the same content is not written again (`publishing`).
            assert store.read(f"{target}/{MODEL_MANIFEST}") is not None
        else:
            publish(made(), target, "new", replace=replaced)
        assert word_of(store, target) == "new"
        if ended:
            break
    assert words == sorted(words, key=lambda word: word == "new")
    assert (words[0], words[-1]) == (before, "new")
    return len(words)
