"""Scripts as tutorials for pyarrow have them, run twice: with ``pyarrow.parquet`` and with :mod:`pyparq.parquet`."""

# ruff: noqa: E501  scripts stay as their users write them
from __future__ import annotations

import http.server
import inspect
import io
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import pyparq.pandas
import pyparq.parquet

TESTDATA = Path(__file__).resolve().parents[2] / "testdata"

START = """
import datetime as dt, io, os
import numpy as np, pandas as pd, pyarrow as pa, pyarrow.compute as pc
import {module} as pq
table = pa.table({{
    "n": pa.array([1, 2, None, 4] * 25, pa.int64()), "s": ["x", "y", None, "zz"] * 25, "f": np.arange(100) / 4,
    "day": pa.array([dt.date(2024, 1, 1 + i % 28) for i in range(100)]),
    "at": pa.array([dt.datetime(2024, 3, 10, 2, i % 60) for i in range(100)], pa.timestamp("us", "UTC")),
    "tags": [[1, None], [], None, [2]] * 25, "p": [{{"a": i, "b": str(i)}} for i in range(100)], "g": [i % 3 for i in range(100)],
}})
frame = pd.DataFrame({{"a": [1.5, None, 3.0], "b": ["x", "y", None]}}, index=pd.Index(["r", "s", "t"], name="key"))
pq.write_table(table, "t.parquet", row_group_size=30)
"""

SCRIPTS = {
    "write and read": "print(pq.read_table('t.parquet').equals(table), table.num_rows)",
    "some columns": "print(pq.read_table('t.parquet', columns=['s', 'n']).to_pydict())",
    "a nested column": "print(pq.read_table('t.parquet', columns=['p.a']).to_pydict())",
    "pandas": "pq.write_table(pa.Table.from_pandas(frame), 'f.parquet'); print(pq.read_table('f.parquet').to_pandas())",
    "pandas without index": "pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), 'f.parquet')\n"
                            "print(pq.read_table('f.parquet').to_pandas())",
    "pandas with columns": "pq.write_table(pa.Table.from_pandas(frame), 'f.parquet')\n"
                           "print(pq.read_pandas('f.parquet', columns=['a']).to_pandas())",
    "a file": "f = pq.ParquetFile('t.parquet'); print(f.metadata.num_rows, f.num_row_groups, f.schema_arrow.equals(table.schema))",
    "a row group": "print(pq.ParquetFile('t.parquet').read_row_group(1, columns=['n']).to_pydict())",
    "row groups": "print(pq.ParquetFile('t.parquet').read_row_groups([0, 3]).num_rows)",
    "batches": "print([b.num_rows for b in pq.ParquetFile('t.parquet').iter_batches(batch_size=25, columns=['n', 's'])])",
    "a writer": "with pq.ParquetWriter('w.parquet', table.schema) as w:\n    for _ in range(3): w.write_table(table)\n"
                "print(pq.ParquetFile('w.parquet').num_row_groups, pq.read_table('w.parquet').num_rows)",
    "a writer of batches": "w = pq.ParquetWriter('w.parquet', table.schema)\n"
                           "for b in table.to_batches(max_chunksize=40): w.write_batch(b)\nw.close()\n"
                           "print(pq.read_metadata('w.parquet').num_row_groups)",
    "metadata": "m = pq.read_metadata('t.parquet')\n"
                "print(m.num_columns, m.num_rows, m.num_row_groups, m.row_group(0).num_rows, m.schema.names)",
    "statistics": "c = pq.ParquetFile('t.parquet').metadata.row_group(0).column(0)\n"
                  "print(c.statistics.min, c.statistics.max, c.statistics.null_count, c.is_stats_set, c.path_in_schema)\n"
                  "print([pq.read_metadata('t.parquet').row_group(i).column(4).statistics.max.isoformat() for i in range(4)])",
    "the schema": "s = pq.read_schema('t.parquet'); print(s.names, s.field('at').type)",
    "the Parquet schema": "c = pq.ParquetFile('t.parquet').schema.column(1)\n"
                          "print(c.name, c.path, c.physical_type, c.logical_type.type, c.max_definition_level)",
    "filters": "print(pq.read_table('t.parquet', filters=[('n', '>', 2), ('s', '==', 'zz')]).num_rows)",
    "filters with or": "print(pq.read_table('t.parquet', filters=[[('n', '=', 1)], [('s', 'in', ['y', 'zz'])]]).num_rows)",
    "an expression": "print(pq.read_table('t.parquet', filters=(pc.field('n') > 1) & (pc.field('g') == 0), columns=['f']).to_pydict())",
    "compression": "for codec in ('none', 'snappy', 'gzip', 'brotli', 'zstd', 'lz4'):\n"
                   "    pq.write_table(table, 'c.parquet', compression=codec)\n"
                   "    print(codec, pq.read_metadata('c.parquet').row_group(0).column(0).compression, pq.read_table('c.parquet') == table)",
    "compression by column": "pq.write_table(table, 'c.parquet', compression={'n': 'gzip', 's': 'zstd'}, compression_level={'s': 5})\n"
                             "print([pq.read_metadata('c.parquet').row_group(0).column(i).compression for i in (0, 1)])",
    "dictionary": "pq.write_table(table, 'c.parquet', use_dictionary=['s'])\n"
                  "print(pq.read_table('c.parquet', read_dictionary=['s']).schema.field('s').type)",
    "partitions": "pq.write_to_dataset(table, 'd', partition_cols=['g']); r = pq.read_table('d')\n"
                  "print(sorted(os.listdir('d')), r.num_rows, r.schema.field('g').type, r.column_names)\n"
                  "print(pq.read_table('d', filters=[('g', '=', 1)]).num_rows)",
    "a dataset": "pq.write_to_dataset(table, 'd', partition_cols=['g']); d = pq.ParquetDataset('d', filters=[('n', '>', 3)])\n"
                 "print(len(d.files), d.read(columns=['n', 'g']).num_rows, d.schema.names)",
    "a list of files": "for i in range(3): pq.write_table(table.slice(i * 10, 10), f'{i}.parquet')\n"
                       "print(pq.read_table([f'{i}.parquet' for i in range(3)]).num_rows)",
    "summary files": "m = []\npq.write_to_dataset(table, 'd', partition_cols=['g'], metadata_collector=m)\n"
                     "schema = table.drop_columns(['g']).schema\n"
                     "pq.write_metadata(schema, 'd/_common_metadata')\n"
                     "pq.write_metadata(schema, 'd/_metadata', metadata_collector=m)\n"
                     "print(pq.read_metadata('d/_metadata').num_rows, pq.read_schema('d/_common_metadata').names)",
    "row groups of another file": "a, b = pq.read_metadata('t.parquet'), pq.read_metadata('t.parquet')\n"
                                  "a.append_row_groups(b); print(a.num_rows, a.num_row_groups)",
    "memory": "b = io.BytesIO(); pq.write_table(table, b); print(pq.read_table(pa.BufferReader(b.getvalue())).num_rows)",
    "old timestamps": "pq.write_table(table, 'c.parquet', use_deprecated_int96_timestamps=True)\n"
                      "print(pq.read_metadata('c.parquet').row_group(0).column(4).physical_type, pq.read_table('c.parquet')['at'][5])",
    "milliseconds": "pq.write_table(table, 'c.parquet', coerce_timestamps='ms', allow_truncated_timestamps=True)\n"
                    "print(pq.read_table('c.parquet').schema.field('at').type)",
    "for Spark": "pq.write_table(pa.table({'a b': [1]}), 'c.parquet', flavor='spark'); print(pq.read_table('c.parquet').column_names)",
    "errors": "for bad in (lambda: pq.read_table('nothing.parquet'), lambda: pq.ParquetFile(io.BytesIO(b'no')).read(),\n"
              "            lambda: pq.write_table(table, 'c.parquet', compression='what')):\n"
              "    try: bad()\n    except (OSError, pa.ArrowException, ValueError) as error: print('refused')",
    "arguments that tune": "print(pq.read_table('t.parquet', memory_map=True, use_threads=False, pre_buffer=False, buffer_size=4096).num_rows)",
    "one file of many": "w = None\nfor part in (table.slice(0, 50), table.slice(50)):\n"
                        "    w = w or pq.ParquetWriter('w.parquet', part.schema, compression='zstd')\n    w.write(part)\nw.close()\n"
                        "print(pq.read_table('w.parquet').equals(table))",
}  # fmt: skip


def run(module: str, folder: Path) -> list[str]:
    """What each script prints."""
    folder.mkdir()
    parts = [START.format(module=module)]
    for name, script in SCRIPTS.items():
        where = folder / name.replace(" ", "_")
        where.mkdir()
        parts.append(
            f"print('=====')\nos.chdir({str(where)!r})\npq.write_table(table, 't.parquet', row_group_size=30)\n{script}"
        )
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join(parts)], capture_output=True, text=True, cwd=folder, timeout=120
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout.split("=====\n")[1:]


def test_scripts_run_with_one_import_changed(tmp_path: Path) -> None:
    theirs, ours = run("pyarrow.parquet", tmp_path / "theirs"), run("pyparq.parquet", tmp_path / "ours")
    differing = [name for name, a, b in zip(SCRIPTS, theirs, ours, strict=True) if a != b]
    assert differing == []
    assert len(theirs) >= 25


@pytest.mark.parametrize("path", sorted(p for f in ("types", "foreign") for p in (TESTDATA / f).rglob("*.parquet")),
                         ids=lambda p: p.name)  # fmt: skip
def test_schemas_are_printed_alike(path: Path) -> None:
    theirs, ours = (repr(module.ParquetFile(path).schema).split("\n")[1:] for module in (pq, pyparq.parquet))
    assert ours == theirs
    assert len(ours) > 2


# ---- pandas


@pytest.mark.parametrize("backend", [None, "numpy_nullable", "pyarrow"])
def test_frames_are_those_of_pandas(backend: str | None, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "i": [1, 2, 3], "f": [1.5, None, 3.0], "s": ["a", None, "c"], "b": [True, False, True],
            "c": pd.Categorical(["x", "y", "x"]), "t": pd.to_datetime(["2024-03-10 02:30", None, "2024-01-01 00:00"]),
        },
        index=pd.MultiIndex.from_tuples([("k", 1), ("k", 2), ("l", 1)], names=["one", "two"]),
    )  # fmt: skip
    frame.attrs = {"made": "here"}
    given = {} if backend is None else {"dtype_backend": backend}
    pyparq.pandas.to_parquet(frame, tmp_path / "ours.parquet")
    frame.to_parquet(tmp_path / "theirs.parquet")
    if backend == "pyarrow":  # pyarrow forgets that the text of categories was large
        frame = frame.drop(columns="c")
        frame.attrs = {"made": "here"}
        pyparq.pandas.to_parquet(frame, tmp_path / "ours.parquet")
        frame.to_parquet(tmp_path / "theirs.parquet")
    expected = pd.read_parquet(tmp_path / "theirs.parquet", **given)
    for path in (tmp_path / "ours.parquet", tmp_path / "theirs.parquet"):
        found = pyparq.pandas.read_parquet(path, **given)
        pd.testing.assert_frame_equal(found, expected)
        assert found.attrs == expected.attrs == frame.attrs
        part = pyparq.pandas.read_parquet(path, columns=["s"], filters=[("i", ">", 1)], **given)
        pd.testing.assert_frame_equal(part, pd.read_parquet(path, columns=["s"], filters=[("i", ">", 1)], **given))
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "ours.parquet", **given), expected)


def test_partitions_memory_and_index(tmp_path: Path) -> None:
    frame = pd.DataFrame({"g": ["a", "b", "a"], "n": [1, 2, 3]})
    pyparq.pandas.to_parquet(frame, tmp_path / "d", partition_cols=["g"], compression="zstd")
    frame.to_parquet(tmp_path / "e", partition_cols=["g"])
    pd.testing.assert_frame_equal(pyparq.pandas.read_parquet(tmp_path / "d"), pd.read_parquet(tmp_path / "e"))
    raw = pyparq.pandas.to_parquet(frame.set_index("g"), index=False, storage_options={})
    assert raw is not None
    assert list(pd.read_parquet(pa.BufferReader(raw)).columns) == ["n"]
    with pytest.raises(pyparq.OptionError, match="dtype_backend"):
        pyparq.pandas.read_parquet(tmp_path / "e", dtype_backend="polars")


class Frame(pd.DataFrame):  # type: ignore[misc]  # pandas has no types here
    @property
    def _constructor(self) -> type[Frame]:
        return Frame


def test_a_frame_of_a_subclass_and_one_without_columns(tmp_path: Path) -> None:
    path, frame = tmp_path / "a.parquet", Frame({"a": [1, 2]}, index=pd.Index(["x", "y"], name="k"))
    pyparq.pandas.to_parquet(frame, path)
    pd.testing.assert_frame_equal(pyparq.pandas.read_parquet(path), pd.DataFrame(frame))
    pyparq.write_table(frame, path)
    assert pyparq.Table.from_pandas(frame).to_pydict() == pyparq.read_table(path).to_pydict() == {
        "a": [1, 2], "k": ["x", "y"],
    }  # fmt: skip
    for index in (pd.RangeIndex(2, 10, 3, name="z"), pd.Index(["p", None]), pd.RangeIndex(0)):
        empty = pd.DataFrame(index=index)
        pyparq.pandas.to_parquet(empty, path)
        assert pyparq.pandas.read_parquet(path).index.equals(index)
        pyparq.write_table(empty, path)
        assert pyparq.read_table(path).to_pandas().index.equals(index)


def test_arguments_as_pandas_has_them(tmp_path: Path) -> None:
    """In its order; options of a URL are an error without one, and an engine that does not exist is one."""
    path, frame = tmp_path / "a.parquet", pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    ours, theirs = (list(inspect.signature(call).parameters) for call in (pyparq.pandas.read_parquet, pd.read_parquet))
    assert ours[:-1] == theirs[:-1]
    ours, theirs = (
        list(inspect.signature(call).parameters)[1:-1] for call in (pyparq.pandas.to_parquet, pd.DataFrame.to_parquet)
    )
    assert ours == theirs
    for options in ({"engine": "pyarrow"}, {"engine": "pyarrow", "compression": {"a": "gzip", "b": "zstd"}}):
        pyparq.pandas.to_parquet(frame, path, **options)
        pd.testing.assert_frame_equal(pyparq.pandas.read_parquet(path, "pyarrow", ["b"], memory_map=True), frame[["b"]])
    mistakes: list[tuple[Any, dict[str, Any]]] = [
        (path, {"storage_options": {"anon": True}}), (str(path), {"storage_options": {"anon": True}}),
        (io.BytesIO(path.read_bytes()), {"storage_options": {"anon": True}}), (path, {"engine": "polars"}),
    ]  # fmt: skip
    for target, options in mistakes:
        for call in (pd.read_parquet, pyparq.pandas.read_parquet):
            with pytest.raises(ValueError, match=r"URL|engine"):
                call(target, **options)
        for write in (frame.to_parquet, partial(pyparq.pandas.to_parquet, frame)):
            with pytest.raises(ValueError, match=r"URL|engine"):
                write(target, **options)
    system = pyarrow.fs.LocalFileSystem()
    for call in (pd.read_parquet, pyparq.pandas.read_parquet):
        with pytest.raises((ValueError, NotImplementedError), match=r"filesystem|FileSystem"):
            call(str(path), filesystem=system, storage_options={"anon": True})


def test_storage_options_of_http_are_headers(tmp_path: Path) -> None:
    seen: list[str | None] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

        def parse_request(self) -> bool:
            found = super().parse_request()
            seen.append(self.headers.get("Authorization"))
            return found

    frame = pd.DataFrame({"a": [1, 2]})
    frame.to_parquet(tmp_path / "a.parquet")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/a.parquet"
        for call in (pd.read_parquet, pyparq.pandas.read_parquet):
            given = {"Authorization": f"Bearer {call.__module__}", "User-Agent": "me"}
            pd.testing.assert_frame_equal(call(url, storage_options=given), frame)
            assert set(seen) == {given["Authorization"]}
            seen.clear()
    finally:
        server.shutdown()
        server.server_close()


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
import pyparq, pyparq.parquet as pq
table = pyparq.Table.from_pydict({"a": [1, 2, 3], "s": ["x", None, "z"], "g": [1, 1, 2]})
pq.write_table(table, "t.parquet", compression="zstd", row_group_size=2)
back = pq.read_table("t.parquet", columns=["s", "a"], filters=[("a", ">", 1)])
assert type(back) is pyparq.Table and back.to_pydict() == {"s": [None, "z"], "a": [2, 3]}, back
with pq.ParquetFile("t.parquet") as f:
    assert f.num_row_groups == 2 and f.metadata.row_group(0).column(0).statistics.max == 2
    assert f.schema_arrow.names == ["a", "s", "g"]
    assert [b.num_rows for b in f.iter_batches(10)] == [2, 1]
with pq.ParquetWriter("w.parquet", table.schema) as w:
    w.write_table(table)
pq.write_to_dataset(table, "d", partition_cols=["g"])
assert pq.read_table("d").num_rows == 3
try:
    pq.read_table(b"no")
except pyparq.CorruptFileError:
    print("done")
"""


def test_without_pyarrow_results_are_our_own(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYARROW], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert ran.stdout == "done\n", ran.stderr[-2000:]
