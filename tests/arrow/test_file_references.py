"""FILE, the logical type of format 2.14: kept, written, checked; and nothing is opened that a file names."""

from __future__ import annotations

import builtins
import io
import socket
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hostile_structs import Workpiece
from interop_peers import with_datafusion

import pyparq
from pyparq import col
from pyparq.encryption import DecryptionProperties, EncryptionProperties
from pyparq.errors import DataError, SchemaError
from pyparq.format import ttypes as tt

PARTS = ("uri", "offset", "size", "content_type", "checksum", "inline")


def value(**given: Any) -> dict[str, Any]:
    return {**dict.fromkeys(PARTS), **given}


GOOD = [
    value(uri="s3://bucket/cat.jpg"), None, value(inline=b"abc", content_type="text/plain"), value(inline=b""),
    value(uri="/etc/passwd", size=0), value(uri="http://127.0.0.1:1/x", offset=10, size=5, checksum="MD5:" + "0" * 32),
    value(offset=4, size=10), value(inline=b"x", uri="file:///etc/passwd"),
]  # fmt: skip


def written(values: list[Any], schema: Any = None, **options: Any) -> bytes:
    sink = io.BytesIO()
    pyparq.write_table({"f": values}, sink, schema=schema or {"f": "file?"}, **options)
    return sink.getvalue()


def test_peers_that_pass_over_the_annotation_read_the_struct(tmp_path: Path) -> None:
    (path := tmp_path / "files.parquet").write_bytes(written(GOOD))
    with duckdb.connect() as connection:
        assert connection.execute("select f from read_parquet(?)", [str(path)]).fetchall() == [(v,) for v in GOOD]
    assert with_datafusion(path)["f"].to_pylist() == GOOD


def annotation(data: bytes, name: str = "f") -> Any:
    with pyparq.ParquetFile(data) as file:
        return next(n for n in file.tree.root.children if n.name == name).element.logicalType


def test_written_and_read() -> None:
    data = written(GOOD)
    assert annotation(data).FILE is not None
    table = pyparq.read_table(data)
    assert table.to_pydict()["f"] == GOOD
    assert table.schema.field("f").metadata[b"PARQUET:logical_type"] == b"FILE"
    again = io.BytesIO()
    pyparq.write_table(table, again)  # read and written again it is what it was
    assert annotation(again.getvalue()).FILE is not None
    assert pa.table(table)["f"].to_pylist() == GOOD
    assert pyparq.read_table(data, filters=col("f.uri") == "/etc/passwd").num_rows == 1
    assert pyparq.verify(data).ok


def test_some_fields_in_lists() -> None:
    """A group may define fewer fields, in any order and at any depth."""
    file = pa.struct([("content_type", pa.string()), ("inline", pa.binary())])
    field = pa.field("item", file, metadata={"PARQUET:logical_type": "FILE"})
    rows = [[{"content_type": "a/b", "inline": b"1"}, None], None, []]
    table = pa.table({"l": pa.array(rows, pa.list_(field))})
    data = io.BytesIO()
    pyparq.write_table(table, data)
    found = pyparq.read_table(data.getvalue())
    assert found.to_pydict()["l"] == rows
    with pyparq.ParquetFile(data.getvalue()) as opened:
        (element,) = opened.tree.find("l.list.element").children[0].parent.parent.children
        assert element.is_file
    bad = pa.table({"l": pa.array([[], [rows[0][0], {"content_type": "a/b", "inline": None}]], pa.list_(field))})
    with pytest.raises(DataError, match=r"row 1: a FILE needs inline.*column l"):
        pyparq.write_table(bad, io.BytesIO())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (value(), "needs inline bytes, a uri, or an offset"),
        (value(size=5), "needs inline bytes"),
        (value(uri="", size=5), "needs inline bytes"),
        (value(content_type="a/b", checksum="MD5:x"), "needs inline bytes"),
        (value(offset=5), "an offset needs a size"),
        (value(uri="x", offset=0), "an offset needs a size"),
        (value(uri="x", offset=-1, size=1), "offset of a FILE is below 0"),
        (value(uri="x", size=-1), "size of a FILE is below 0"),
    ],
)
def test_what_means_nothing_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=rf"row 2: .*{said}.*column f"):
        written([GOOD[0], None, wrong])


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_an_encrypted_file_does_not_refer_to_itself(plaintext_footer: bool) -> None:
    """The format does not allow it: such bytes are no module, so nothing encrypts them."""
    keys = EncryptionProperties(b"k" * 16, column_keys={"other": b"c" * 16}, plaintext_footer=plaintext_footer)
    schema = {"f": "file?", "l": "list<file?>?", "other": "int64"}

    def stored(last: Any, **options: Any) -> bytes:
        rows = [{"f": given, "l": [given], "other": 1} for given in (GOOD[0], None, last)]
        sink = io.BytesIO()
        pyparq.write_table(rows, sink, schema=schema, **options)
        return sink.getvalue()

    for bad in (GOOD[6], value(offset=0, size=0), value(offset=4, size=1, uri="")):
        with pytest.raises(DataError, match=r"row 2: a FILE in an encrypted file may not refer.*column f"):
            stored(bad, encryption=keys)
        stored(bad)
    opens = DecryptionProperties(b"k" * 16, column_keys={"other": b"c" * 16})
    for good in (GOOD[5], GOOD[2], value(offset=4, size=1, inline=b"x")):
        assert pyparq.read_table(stored(good, encryption=keys), decryption=opens)["f"].to_pylist()[2] == good


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ([("path", pa.string())], "no field 'path'"),
        ([("URI", pa.string())], "no field 'URI'"),
        ([("size", pa.int32())], "is int64, not"),
        ([("inline", pa.string())], "is binary, not"),
        ([pa.field("uri", pa.string(), nullable=False)], "must be nullable"),
    ],
)
def test_other_forms_are_refused(fields: Any, said: str) -> None:
    field = pa.field("f", pa.struct(fields), metadata={"PARQUET:logical_type": "FILE"})
    with pytest.raises(SchemaError, match=rf"{said}.*column f"):
        pyparq.write_table(pa.schema([field]).empty_table(), io.BytesIO())


def test_nothing_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    data = written(GOOD)

    def refuse(*args: Any, **given: Any) -> Any:
        raise AssertionError(f"opened: {args}")

    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setattr(socket, "socket", refuse)
    assert pyparq.read_table(data).to_pydict()["f"] == GOOD


def test_a_leaf_or_another_group_is_read_as_it_is_stored() -> None:
    """The annotation in the wrong place, or on values that break its rules: nothing is lost."""
    piece = Workpiece(written([value(uri="x")]))
    piece.meta.schema[2].logicalType = tt.LogicalType(FILE=tt.FileType())
    assert pyparq.read_table(piece.with_footer(piece.meta)).num_rows == 1
    plain = {"f": "struct<uri: string?, offset: int64?, size: int64?>?"}
    piece = Workpiece(written([{"uri": None, "offset": -5, "size": None}], plain))
    piece.meta.schema[1].logicalType = tt.LogicalType(FILE=tt.FileType())
    found = pyparq.read_table(piece.with_footer(piece.meta))
    assert found.to_pydict()["f"] == [{"uri": None, "offset": -5, "size": None}]
