"""Replace ``data:NAME`` in the inputs of a job by the URI of that dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from submarine_jobs.datasets.store import DatasetStore
from submarine_jobs.model import JobSpec

#: Beginning of an input that names a dataset.
REFERENCE = "data:"


def resolve_datasets(spec: JobSpec, store: Callable[[], DatasetStore]) -> JobSpec:
    """Return the spec with the URIs of the datasets that ``--input`` and ``--input_path`` name.

    The URI contains the digest, so a job and its repetitions read the same data even if the name is
    given to other data later.

    Parameters
    ----------
    store
        Returns the store; called only if there is such an input.

    Raises
    ------
    UsageError
        If there is no dataset of that name.
    """
    texts = [*(item.uri for item in spec.inputs), spec.input_path or ""]
    named = {text for text in texts if text.startswith(REFERENCE)}
    if not named:
        return spec
    datasets = store()
    uris = {text: datasets.find(text.removeprefix(REFERENCE)).uri for text in named}
    inputs = tuple(replace(item, uri=uris.get(item.uri, item.uri)) for item in spec.inputs)
    path = spec.input_path
    return replace(spec, inputs=inputs, input_path=uris.get(path, path) if path else path)
