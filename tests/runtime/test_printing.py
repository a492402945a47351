"""Objects print whatever state they are in: error reporters print those whose ``__init__`` raised half way."""

from __future__ import annotations

import dataclasses
import importlib
import io
import pkgutil
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from types import TracebackType
from typing import Any

import pytest

import pyparq
from pyparq import col
from pyparq.encryption import CryptoFactory, DecryptionProperties, EncryptionConfiguration, EncryptionKey, LocalFileKms
from pyparq.options import ReadOptions, WriteOptions


def classes_that_print() -> list[type]:
    found = set()
    for module in pkgutil.walk_packages(pyparq.__path__, "pyparq."):
        if ".cli" in module.name or ".generated" in module.name or module.name.endswith("__main__"):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and value.__module__.startswith("pyparq.") and "__repr__" in vars(value):
                found.add(value)
    return sorted(
        (c for c in found if not dataclasses.is_dataclass(c) and not issubclass(c, (tuple, Decimal))),  # made at once
        key=lambda c: c.__name__,
    )


def test_there_are_classes_to_ask() -> None:
    assert len(classes_that_print()) > 20


@pytest.mark.parametrize("cls", classes_that_print(), ids=lambda c: c.__name__)
def test_objects_print_before_they_are_made(cls: type) -> None:
    half_made = (float if issubclass(cls, float) else object).__new__(cls)
    shown = repr(half_made)
    assert cls.__name__ in shown or "complete" in shown


def locals_of(trace: TracebackType | None) -> Iterator[tuple[str, Any]]:
    while trace is not None:
        yield from trace.tb_frame.f_locals.items()
        trace = trace.tb_next


class _Unreadable(io.RawIOBase):
    """A file object that fails when it is used."""

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        raise OSError("no")


FAILING: list[Callable[[], Any]] = [
    lambda: pyparq.ParquetFile(b"PAR1 is not enough PAR1"),
    lambda: pyparq.ParquetFile(_Unreadable()),
    lambda: pyparq.ParquetFile("/does/not/exist"),
    lambda: pyparq.ParquetFile(b"", nothing=1),
    lambda: pyparq.ParquetWriter("/does/not/exist/x", pyparq.schema("message m { required int32 a; }")),
    lambda: pyparq.ParquetWriter(io.BytesIO(), nothing=1),
    lambda: pyparq.write_table({"a": [1]}, io.BytesIO(), compression="tar"),
    lambda: DecryptionProperties(b"short"),
    lambda: DecryptionProperties(bytes(16), {"a": b"short"}),
    lambda: DecryptionProperties(bytes(16), algorithm="none"),
    lambda: pyparq.EncryptionProperties(b"short"),
    lambda: pyparq.EncryptionProperties(bytes(16), {"a": b"short"}),
    lambda: pyparq.EncryptionProperties(bytes(16), plaintext_footer=3),  # type: ignore[arg-type]
    lambda: EncryptionKey(b"short"),
    lambda: LocalFileKms("/does/not/exist"),
    lambda: EncryptionConfiguration("k", {"m": []}),
    lambda: CryptoFactory(3),  # type: ignore[arg-type]
    lambda: ReadOptions(tail_size=-1),
    lambda: WriteOptions(data_page_size=-1),
    lambda: col("a") == None,  # noqa: E711
    lambda: col("a").isin("abc"),
    lambda: pyparq.read_table(io.BytesIO(_file()), ["b"]),
    lambda: pyparq.read_table(io.BytesIO(_file()), limit=-1),
    lambda: pyparq.read_table(io.BytesIO(_file()), rows=[7]),
    lambda: pyparq.read_table(io.BytesIO(_file()[:-60] + bytes(52) + _file()[-8:])),
]


def _file() -> bytes:
    sink = io.BytesIO()
    pyparq.write_table({"a": [1]}, sink)
    return sink.getvalue()


@pytest.mark.parametrize("fails", FAILING, ids=range(len(FAILING)))
def test_every_object_on_the_way_of_an_error_prints(fails: Callable[[], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fails()
        except Exception as error:
            told = [(name, repr(value)) for name, value in locals_of(error.__traceback__)]
        else:
            pytest.fail("nothing failed")
    assert len(told) > 0


def test_half_made_objects_say_so() -> None:
    half = pyparq.ParquetFile.__new__(pyparq.ParquetFile)
    assert repr(half) == "<ParquetFile, not complete>"
    assert repr(DecryptionProperties.__new__(DecryptionProperties)) == "<DecryptionProperties, not complete>"


def test_metadata_that_makes_no_sense_prints() -> None:
    with pyparq.ParquetFile(_file()) as file:
        chunk = file.metadata.row_group(0).column(0)
        chunk.raw.meta_data.codec = "x"
        assert "unreadable" in repr(chunk)
