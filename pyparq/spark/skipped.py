"""Files that a read leaves out (``on_error="skip"``): warnings for the caller, and a folder of notes to which every
process of the read adds."""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from pyparq.errors import SkippedFileWarning
from pyparq.io.sink import open_sink
from pyparq.runtime.messages import warn_caller


class LeftOut(NamedTuple):
    """A file that was left out, and the message of its error."""

    path: str
    error: str


@contextmanager
def left_out() -> Iterator[Callable[[], list[LeftOut]]]:
    """Collects the warnings about files that are left out: those so far."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", SkippedFileWarning)
        yield lambda: [
            LeftOut(w.message.file, str(w.message)) for w in heard if isinstance(w.message, SkippedFileWarning)
        ]
    for other in heard:
        if not issubclass(other.category, SkippedFileWarning):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)


def warn(files: Iterable[LeftOut]) -> None:
    """Say which files were left out, of the line that called a public function, which calls this."""
    for file in files:
        warn_caller(SkippedFileWarning(file.error, file.path))


def note(folder: str, files: Iterable[LeftOut], storage_options: Mapping[str, Any] | None) -> None:
    """Write down which files were left out: one small file of JSON for each, with ``path`` and ``error``. The same file
    makes the same note, so nothing is noted twice."""
    remote = "://" in folder
    if not remote:
        os.makedirs(folder, exist_ok=True)
    for file in files:
        name = hashlib.sha256("\0".join(file).encode("utf-8", "surrogateescape")).hexdigest()[:32] + ".json"
        where = posixpath.join(folder, name) if remote else os.path.join(folder, name)
        sink = open_sink(where, storage_options=storage_options if remote else None)
        sink.write([json.dumps(file._asdict()).encode()])
        sink.commit()
