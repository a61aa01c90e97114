"""Images in directories: the name of an image's directory is its class.

Format: files that Pillow reads (JPEG, PNG, GIF, BMP, WebP), in the layout of torchvision's
ImageFolder and ``tf.keras.utils.image_dataset_from_directory``.
"""

from __future__ import annotations

import io
from importlib.util import find_spec
from typing import Any, Iterator, Sequence
from urllib.parse import unquote

from submarine_data.batches import Batch
from submarine_data.errors import require
from submarine_data.file_systems import FileEntry, scheme_of
from submarine_data.formats.base import Format, Reading, Split, damaged, open_file


class ImageFormat(Format):
    """Image files: columns ``image``, ``label``, ``class`` and ``path``.

    The label is the position of the class among the sorted names of all classes.

    Parameters
    ----------
    files, reading
        See ``Format``.
    decode
        True: ``image`` is an array of shape (height, width, 3), RGB from 0 to 255, dtype uint8;
        False: the bytes of the file [True where Pillow and NumPy are installed].
    image_size
        (height, width) in pixels to which images are scaled, so that they form one array.
    """

    name = "images"

    def __init__(
        self,
        files: Sequence[FileEntry],
        reading: Reading,
        *,
        decode: bool | None = None,
        image_size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(files, reading)
        if decode is None:
            decode = find_spec("PIL") is not None and find_spec("numpy") is not None
        self._decode, self._size = decode, image_size
        self._labels = {
            name: label for label, name in enumerate(sorted({class_of(file) for file in files}))
        }

    def read(self, split: Split) -> Iterator[Batch]:
        """Yield one image."""
        file = split.file
        with open_file(file) as source:
            data = source.read()
        name = class_of(file)
        columns: dict[str, list[Any]] = {
            "image": [self._decoded(file, data) if self._decode else data],
            "label": [self._labels[name]],
            "class": [name],
            "path": [file.uri],
        }
        batch = Batch(columns)
        yield batch if self.reading.columns is None else batch.select(self.reading.columns)

    def _decoded(self, file: FileEntry, data: bytes) -> Any:
        numpy = require("numpy", "Decoding images")
        pillow: Any = require("PIL.Image", "Decoding images")
        try:
            with pillow.open(io.BytesIO(data)) as image:
                plain = image.convert("RGB")
                if self._size is not None:
                    plain = plain.resize((self._size[1], self._size[0]))
                return numpy.asarray(plain)
        except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as exc:
            raise damaged(file, "its image", exc) from exc


def class_of(file: FileEntry) -> str:
    """Return the name of the directory that contains a file."""
    parts = file.uri.rsplit("/", 2)
    name = parts[-2] if len(parts) > 1 else ""
    return unquote(name) if scheme_of(file.uri) in ("http", "https") else name
