"""Put a Spark DataFrame: its own session writes Parquet to the cluster, without this machine."""

from __future__ import annotations

import hashlib
import time
import uuid
from typing import Any

from submarine_jobs.datasets.dataset import SAMPLE_COLUMNS, SAMPLE_ROWS, Dataset, Sample
from submarine_jobs.datasets.staging import content_digest, sample_cell
from submarine_jobs.datasets.store import DatasetStore, PutResult
from submarine_jobs.errors import StorageError, SubmarineError
from submarine_runtime.translation import _

_READ_BYTES = 8 << 20


def is_spark_frame(value: object) -> bool:
    """Return whether ``value`` is a DataFrame of PySpark, classic or Connect."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")
        for kind in type(value).__mro__
    )


def put_spark_frame(
    store: DatasetStore, name: str | None, frame: Any, *, replaces: bool = False
) -> PutResult:
    """Let the session of ``frame`` write it below the job root, and name it.

    Spark chooses the names of the files, so their digests are those of the content in the order of
    their parts; they are read once for it.

    Raises
    ------
    SubmarineError
        If the session cannot write there; the message has its error.
    UsageError
        If the name is invalid or belongs to other data.
    """
    directory = f"spark-{uuid.uuid4().hex}"
    path = store.new_directory(directory)
    url = store.storage.url(path)
    try:
        try:
            frame.write.parquet(url)
        except Exception as error:  # py4j, Spark Connect and Hadoop have exceptions of their own
            raise SubmarineError(
                _("Spark could not write {url}: {error}.").format(
                    url=url, error=" ".join(str(error).split())[:300].rstrip(".")
                ),
                _("The session of the DataFrame must reach the file system of the job root."),
            ) from None
        described = _described(store, frame, directory)
        return store.adopt(name, described, replaces=replaces)
    except BaseException:
        store.storage.delete(path, recursive=True)
        raise


def _described(store: DatasetStore, frame: Any, directory: str) -> Dataset:
    storage, path = store.storage, store.new_directory(directory)
    files = [
        (name, size)
        for name, size in storage.walk(path)
        if not name.rpartition("/")[2].startswith(("_", "."))
    ]
    if not files:
        raise StorageError(
            _("Spark wrote no file to {url}.").format(url=storage.url(path)),
            _("Its session may use another file system than this one."),
        )
    digests = []
    for number, (name, size) in enumerate(sorted(files)):
        found = hashlib.sha256()
        for offset in range(0, size, _READ_BYTES):
            found.update(storage.read(f"{path}/{name}", offset, _READ_BYTES))
        # The names differ from those of uploaded files, which lie under the names of the digest.
        digests.append((f"spark/{number:05d}", size, found.hexdigest()))
    # The query of the frame may take long, and give other rows when it runs again.
    read = frame.sparkSession.read.parquet
    stored = read(storage.url(path))
    shown = stored.columns[:SAMPLE_COLUMNS]

    def first_rows(written: Any) -> Any:
        return written.select(*map(_quoted, shown)).take(SAMPLE_ROWS)

    # Spark reads the largest file first, and the first file may have no rows.
    taken = first_rows(read(storage.url(f"{path}/{min(files)[0]}"))) or first_rows(stored)
    rows = [tuple(sample_cell(row[column]) for column in range(len(shown))) for row in taken]
    return Dataset(
        "",
        content_digest(digests),
        directory,
        "spark",
        sum(size for _name, size in files),
        len(files),
        time.time(),
        store.user,
        rows=stored.count(),
        schema=tuple((str(column), str(kind)) for column, kind in frame.dtypes),
        sample=Sample(tuple(map(str, shown)), tuple(rows), len(stored.columns) - len(shown)),
    )


def _quoted(column: str) -> str:
    """Return the name of a column for Spark; a dot in it would select a field."""
    return "`" + column.replace("`", "``") + "`"
