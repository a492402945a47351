"""Damaged files: a typed error that leaves everything as it was, or indexes that change no answer."""

from __future__ import annotations

import io
import os
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import corpus_path
from rewritten import footer_bytes, page_hashes

import pyparq
from pyparq.errors import ParquetError
from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import deserialize, serialize
from pyparq.io import byte_ranges

ROWS = 600


def sources() -> dict[str, bytes]:
    table = pa.table(
        {
            "id": np.arange(ROWS),
            "text": [f"value {i % 40}" for i in range(ROWS)],
            "x": np.linspace(-1, 1, ROWS),
            "list": [None if i % 7 == 0 else [f"{j}" for j in range(i % 4)] for i in range(ROWS)],
            "flag": [None if i % 5 == 0 else i % 2 == 0 for i in range(ROWS)],
        }
    )
    options: dict[str, dict[str, Any]] = {
        "dictionary": {"compression": "snappy"},
        "v2": {"compression": "zstd", "data_page_version": "2.0"},
        "delta": {
            "use_dictionary": False, "compression": "none",
            "column_encoding": {"id": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY", "x": "BYTE_STREAM_SPLIT"},
        },
        "indexed": {"write_page_index": True, "bloom_filter_options": {"id": {"ndv": 300}}},
    }  # fmt: skip
    found = {}
    for name, given in options.items():
        sink = io.BytesIO()
        pq.write_table(table, sink, row_group_size=300, data_page_size=600, **given)
        found[name] = sink.getvalue()
    return found


SOURCES = sources()


def attempt(data: bytes, **options: Any) -> str:
    """``"indexed"``, or the name of a typed error. What was written reads as before, as far as it reads."""
    sink = io.BytesIO()
    try:
        pyparq.add_indexes(data, sink, bloom_filters=True, use_threads=False, **options)
    except ParquetError as error:
        return type(error).__name__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            before = pyparq.read_table(data, use_page_index=False, use_bloom_filters=False).to_arrow()
        except ParquetError:
            return "indexed"
        after = pyparq.read_table(sink.getvalue()).to_arrow()
        assert repr(after.to_pydict()) == repr(before.to_pydict())  # (NaN too)
    return "indexed"


@pytest.mark.parametrize("name", SOURCES)
def test_flipped_bytes(name: str) -> None:
    data, chance, outcomes = SOURCES[name], random.Random(name), set()
    for k in range(100):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(4, len(data) - 8)] = chance.randrange(256)
        outcomes.add(
            attempt(bytes(damaged), replace=k % 2 == 0, bloom_filter_layout=chance.choice(["footer", "row_group"]))
        )
    assert "indexed" in outcomes
    assert "CorruptFileError" in outcomes


@pytest.mark.parametrize("missing", [1, 30, 90])
def test_filters_do_not_part_the_pages_of_a_chunk(missing: int) -> None:
    """Readers find the pages behind the stated end of a chunk, as long as nothing else begins there."""
    data = SOURCES["v2"]
    footer = deserialize(tt.FileMetaData, footer_bytes(data))[0]
    footer.row_groups[0].columns[-1].meta_data.total_compressed_size -= missing
    changed = serialize(footer)
    data = data[: len(data) - 8 - len(footer_bytes(data))] + changed + len(changed).to_bytes(4, "little") + b"PAR1"
    wanted = pyparq.read_table(SOURCES["v2"]).to_arrow()
    assert pyparq.read_table(data).to_arrow().equals(wanted)
    for page_index in (False, True):
        sink = io.BytesIO()
        pyparq.add_indexes(data, sink, bloom_filters=["id"], bloom_filter_layout="row_group", page_index=page_index)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pyparq.CorruptIndexWarning)  # pages beyond the stated end
            assert pyparq.read_table(sink.getvalue()).to_arrow().equals(wanted)


@pytest.mark.parametrize("name", SOURCES)
def test_files_cut_short(name: str) -> None:
    data = SOURCES[name]
    for end in range(0, len(data), max(len(data) // 60, 1)):
        assert attempt(data[:end]) in ("CorruptFileError", "LimitError")


@pytest.mark.fuzz
def test_flipped_bytes_at_length() -> None:
    chance = random.Random()
    for _ in range(5_000):
        data = bytearray(SOURCES[chance.choice(list(SOURCES))])
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(4, len(data) - 8)] = chance.randrange(256)
        attempt(bytes(data), replace=chance.random() < 0.5, bloom_filter_layout=chance.choice(["footer", "row_group"]))


def test_bad_files_of_the_corpus(corpus: Path) -> None:
    assert corpus == corpus_path()
    for path in sorted((corpus / "bad_data").glob("*.parquet")):
        before = path.stat()
        attempt(path.read_bytes(), replace=True)
        assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_memory_is_bounded() -> None:
    """A page that unfolds to far more than it takes in the file."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"s": ["a" * 1_000_000] * 40}), sink, use_dictionary=False, compression="zstd")
    with pytest.raises(pyparq.LimitError, match="max_memory"):
        pyparq.add_indexes(sink.getvalue(), io.BytesIO(), limits=pyparq.Limits(max_memory=8 << 20))
    assert pyparq.add_indexes(sink.getvalue(), io.BytesIO(), limits=pyparq.Limits(max_memory=256 << 20)).ok


# ---- copying


def test_bytes_are_copied_by_the_system_or_through_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = os.urandom(3 << 20)
    (tmp_path / "a").write_bytes(data)
    for works in (True, False):
        if not works:

            def refuse(*arguments: Any) -> int:
                raise OSError(18, "Invalid cross-device link")

            monkeypatch.setattr(os, "copy_file_range", refuse, raising=False)
        with (tmp_path / "a").open("rb") as source, (tmp_path / "b").open("wb") as target:
            assert byte_ranges.copy_between(source.fileno(), target.fileno(), 10, len(data)) == len(data) - 10
            assert byte_ranges.copy_between(source.fileno(), target.fileno(), len(data) - 5, len(data) + 100) == 5
        assert (tmp_path / "b").read_bytes() == data[10:] + data[-5:]
        path = tmp_path / "f.parquet"
        path.write_bytes(SOURCES["v2"])
        pyparq.add_indexes(path, bloom_filters=True)
        assert page_hashes(path.read_bytes()) == page_hashes(SOURCES["v2"])
