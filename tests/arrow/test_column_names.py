"""Columns as users name them: what ``leaf.dotted`` prints, tuples, groups and short paths, everywhere alike."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_files import ok as run
from encryption_tools import kms_file, local_kms

import pyparq
from pyparq import col
from pyparq.arrow.ingest import ingest
from pyparq.cli.options import list_of_names, one_name
from pyparq.encryption import (
    CryptoFactory,
    DecryptionProperties,
    EncryptionConfiguration,
    EncryptionProperties,
)
from pyparq.errors import ColumnNotFoundError, FilterError, OptionError
from pyparq.options import WriteOptions
from pyparq.write.column_plans import make_plan

ROWS = 6
TABLE = pa.table(
    {
        "id": list(range(ROWS)),
        "s": pa.array([{"x.y": k, "t": {"u.v": str(k), "w": -k}} for k in range(ROWS)]),
        "top.level": list(range(10, 10 + ROWS)),
        "ls": pa.array([[{"p.q": k}] for k in range(ROWS)]),
    }
)
DOTTED = ["id", "s.x.y", "s.t.u.v", "s.t.w", "top.level", "ls.list.element.p.q"]
PATHS = [("id",), ("s", "x.y"), ("s", "t", "u.v"), ("s", "t", "w"), ("top.level",), ("ls", "list", "element", "p.q")]

# Nested columns that print alike, and one at the top that prints like one below.
ALIKE = pa.table(
    {"a": pa.array([{"b.c": 1, "b": {"c": 2}}]), "n": [3], "n.m": [4], "d": pa.array([{"e": 5}]), "d.e": [6]}
)


def as_bytes(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


@pytest.fixture(scope="module")
def data() -> bytes:
    return as_bytes(TABLE, write_page_index=True)


def dig(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value[0] if name == "list" else value if name == "element" else value[name]
    return value


@pytest.mark.parametrize("k", range(len(DOTTED)))
def test_what_the_library_prints_is_accepted(data: bytes, k: int) -> None:
    expected = [dig(row, PATHS[k]) for row in TABLE.to_pylist()]
    with pyparq.ParquetFile(data) as file:
        assert file.tree.leaves[k].dotted == DOTTED[k]
        for name in (DOTTED[k], PATHS[k]):
            assert file.tree.find(name) is file.tree.leaves[k]
            got = file.read(columns=[name])
            assert [dig(row, PATHS[k]) for row in got.to_pylist()] == expected
            wanted = expected[2]
            if "ls" in name:
                assert file.read(["id"], filters=col(name).contains(wanted)).to_pydict() == {"id": [2]}
                assert file.read(["id"], filters=col(name).contains(None)).num_rows == 0
            else:
                for condition in (col(name) == wanted, col(name).isin([wanted]), [(name, "=", wanted)]):
                    assert file.read(["id"], filters=condition).to_pydict() == {"id": [2]}
                assert file.read(["id"], filters=col(name).is_null()).num_rows == 0
            for look in (file.pages, file.page_locations, file.column_index, file.bloom_filter):
                assert repr(look(0, name)) == repr(look(0, k))
            assert file.metadata.row_group(0).column(name).path_in_schema == DOTTED[k]
            assert file.metadata.row_group(0).column_encryption(name) is None


def test_names_in_read_options(data: bytes) -> None:
    for name in ("s.t.u.v", ("s", "t", "u.v")):
        got = pyparq.read_table(data, columns=["s.t.u.v"], read_dictionary=[name]).to_arrow()
        assert pa.types.is_dictionary(got.schema.field("s").type.field("t").type.field("u.v").type)
        got = pyparq.read_table(data, columns=["s.t.u.v"], binary_columns=[name]).to_arrow()
        assert got["s"].to_pylist()[1] == {"t": {"u.v": b"1"}}


def test_a_group_is_all_its_leaves_and_short_paths_work(data: bytes) -> None:
    with pyparq.ParquetFile(data) as file:
        both = file.read(["s.t"]).to_pylist()
        assert both[3] == {"s": {"t": {"u.v": "3", "w": -3}}}
        assert file.read([("s", "t")]).to_pylist() == both == file.read(["s.t.u.v", ("s", "t", "w")]).to_pylist()
        for short in ("ls.p.q", ("ls", "p.q"), "ls.element.p.q"):
            assert file.tree.find(short).dotted == "ls.list.element.p.q"
            assert file.read(["id"], filters=col(short).contains(4)).to_pydict() == {"id": [4]}


def test_columns_that_print_alike_are_told_apart_by_tuples() -> None:
    raw = as_bytes(ALIKE)
    with pyparq.ParquetFile(raw) as file:
        for use in (
            lambda: file.read(["a.b.c"]),
            lambda: file.read(filters=col("a.b.c") == 1),
            lambda: file.pages(0, "a.b.c"),
            lambda: pyparq.read_table(raw, read_dictionary=["a.b.c"]),
            lambda: pyparq.write_table(ALIKE, io.BytesIO(), column_encoding={"a.b.c": "PLAIN"}),
            lambda: pyparq.write_table(ALIKE, io.BytesIO(), sort_by="a.b.c"),
            lambda: pyparq.write_table(
                ALIKE, io.BytesIO(), encryption=EncryptionProperties(bytes(16), {"a.b.c": bytes(16)})
            ),
        ):
            with pytest.raises(ColumnNotFoundError) as caught:
                use()
            assert "('a', 'b.c')" in str(caught.value)
            assert "('a', 'b', 'c')" in str(caught.value)
        assert file.read([("a", "b.c")]).to_pylist() == [{"a": {"b.c": 1}}]
        assert file.read([("a", "b", "c")]).to_pylist() == [{"a": {"b": {"c": 2}}}]
        assert (
            file.read(filters=col("a", "b.c") == 1).num_rows
            == file.read(filters=col(("a", "b", "c")) == 2).num_rows
            == 1
        )
        # A top-level column's own name always means that column: names of a schema can be used as they are.
        assert file.read(["d.e"]).to_pylist() == [{"d.e": 6}]
        assert file.read([("d", "e")]).to_pylist() == [{"d": {"e": 5}}]
        assert file.read([("n.m",)]).to_pylist() == [{"n.m": 4}]


def test_fields_of_one_name_are_refused_not_guessed() -> None:
    from pyparq.format import ttypes as tt
    from pyparq.format.schema_tree import build_tree

    def leaf(name: str) -> Any:
        return tt.SchemaElement(name=name, type=1, repetition_type=0)

    root = tt.SchemaElement(name="schema", num_children=1)
    group = tt.SchemaElement(name="g", num_children=2, repetition_type=0)
    tree = build_tree([root, group, leaf("x"), leaf("x")])
    with pytest.raises(
        ColumnNotFoundError, match=r"2 columns have the name 'g\.x', so it does not identify one of them"
    ):
        tree.find("g.x")


@pytest.mark.parametrize("wrong", [(), ("a", 3), True, None, b"a"])
def test_what_is_no_name(data: bytes, wrong: Any) -> None:
    with pytest.raises(OptionError):
        pyparq.read_table(data, columns=[wrong])
    with pytest.raises((OptionError, FilterError)):
        pyparq.read_table(data, filters=[(wrong, "=", 1)])


def test_numbers_of_columns(data: bytes) -> None:
    """As polars has them. There is no last column by a negative one, and no column behind the last."""
    names = pyparq.read_table(data).column_names
    assert pyparq.read_table(data, columns=[1, 0]).column_names == [names[1], names[0]]
    for wrong in (-1, len(names)):
        with pytest.raises(ColumnNotFoundError, match=f"there is no column {wrong}"):
            pyparq.read_table(data, columns=[wrong])
    with pytest.raises((OptionError, FilterError)):
        pyparq.read_table(data, filters=[(1, "=", 1)])


def test_missing_names_offer_near_ones(data: bytes) -> None:
    with pytest.raises(ColumnNotFoundError, match=r"no column 's\.t\.u\.w'; did you mean 's\.t\.u\.v'"):
        pyparq.read_table(data, columns=["s.t.u.w"])
    with pytest.raises(ColumnNotFoundError, match=r"no column 'idd'; did you mean 'id'"):
        pyparq.read_table(data, columns=["idd"])


NAMED = [("s.x.y", "s.t.u.v"), (("s", "x.y"), ("s", "t", "u.v"))]


@pytest.mark.parametrize(("number", "text"), NAMED)
def test_write_options_by_name(number: Any, text: Any) -> None:
    sink = io.BytesIO()
    pyparq.write_table(
        TABLE, sink, compression={text: "gzip"}, compression_level={text: 1}, use_dictionary=False,
        column_encoding={number: "DELTA_BINARY_PACKED"}, write_statistics=[number], bloom_filters=[text],
        bloom_filter_options={number: {"fpp": 0.1}}, field_ids={number: 7, text: 8},
        column_key_value_metadata={number: {"k": "v"}}, sort_by=[(number, "descending")],
    )  # fmt: skip
    written = pq.ParquetFile(io.BytesIO(sink.getvalue()))
    group = written.metadata.row_group(0)
    chunks = {group.column(k).path_in_schema: group.column(k) for k in range(group.num_columns)}
    assert [n for n, c in chunks.items() if c.compression == "GZIP"] == ["s.t.u.v"]
    assert "DELTA_BINARY_PACKED" in chunks["s.x.y"].encodings
    assert [n for n, c in chunks.items() if c.is_stats_set and c.statistics.has_min_max] == ["s.x.y"]
    schema, _ = ingest(TABLE)
    plan = make_plan(schema, WriteOptions(use_dictionary=[text]))
    assert [".".join(c.path) for c in plan.columns if c.dictionary] == ["s.t.u.v"]
    assert chunks["s.x.y"].metadata == {b"k": b"v"}
    assert group.sorting_columns == (pq.SortingColumn(1, descending=True, nulls_first=False),)
    assert written.read()["id"].to_pylist() == list(reversed(range(ROWS)))
    inner = written.schema_arrow.field("s").type
    assert inner.field("x.y").metadata[b"PARQUET:field_id"] == b"7"
    assert inner.field("t").type.field("u.v").metadata[b"PARQUET:field_id"] == b"8"
    with pyparq.ParquetFile(sink.getvalue()) as file:
        has = [leaf.dotted for leaf in file.tree.leaves if file.bloom_filter(0, leaf.path) is not None]
    assert has == ["s.x.y", "s.t.u.v"]


def test_storage_options_by_name() -> None:
    import datetime as dt
    from decimal import Decimal

    row = {"a.t": dt.datetime(2020, 1, 1), "b.d": Decimal("1.5"), "c.o": dt.time(1), "d.f": 1.5}
    table = pa.table({"s": pa.array([row])})
    plain, paths = ("s.a.t", "s.b.d", "s.c.o", "s.d.f"), (("s", "a.t"), ("s", "b.d"), ("s", "c.o"), ("s", "d.f"))
    found = []
    for moment, decimal, clock, number in (plain, paths):
        sink = io.BytesIO()
        pyparq.write_table(
            table, sink, int96_timestamps=[moment], decimal_storage={decimal: "binary"},
            write_time_adjusted_to_utc=[clock], float_order={number: "IEEE_754_TOTAL_ORDER"},
        )  # fmt: skip
        schema = pq.ParquetFile(io.BytesIO(sink.getvalue())).schema
        assert [schema.column(k).physical_type for k in range(2)] == ["INT96", "BYTE_ARRAY"]
        assert "isAdjustedToUTC=true" in str(schema.column(2).logical_type)
        found.append(sink.getvalue())
    assert found[0] == found[1]


def test_sort_keys_that_are_paths(data: bytes) -> None:
    for key in ("s.t.w", [("s", "t", "w")], [(("s", "t", "w"),)], [(("s", "t", "w"), "ascending", "nulls_first")]):
        sink = io.BytesIO()
        pyparq.write_table(TABLE, sink, sort_by=key)
        assert pyparq.read_table(sink.getvalue(), ["id"]).to_pydict()["id"] == list(reversed(range(ROWS)))
    claimed = io.BytesIO()
    pyparq.write_table(TABLE, claimed, sorting_columns=[("s", "x.y")])
    assert pq.ParquetFile(io.BytesIO(claimed.getvalue())).metadata.row_group(0).sorting_columns[0].column_index == 1
    for wrong in ([("id", "desc")], ["s.x.y", ("s", "x.y")]):
        with pytest.raises(OptionError):
            pyparq.write_table(TABLE, io.BytesIO(), sort_by=wrong)


def test_two_names_of_one_column_must_agree() -> None:
    with pytest.raises(OptionError, match="the column has two values"):
        pyparq.write_table(TABLE, io.BytesIO(), compression={"s.x.y": "gzip", ("s", "x.y"): "zstd"})
    keys = {"s.x.y": bytes(16), ("s", "x.y"): bytes(range(16))}
    with pytest.raises(OptionError, match="has two keys"):
        pyparq.write_table(TABLE, io.BytesIO(), encryption=EncryptionProperties(bytes(16), keys))


FOOTER, OWN = b"footer-key-16byt", b"column-key-16byt"


@pytest.mark.parametrize("name", ["s.t.u.v", ("s", "t", "u.v"), "s.t", ("s",), "ls.p.q", ("ls", "p.q")])
def test_keys_by_name(name: Any) -> None:
    sink = io.BytesIO()
    pyparq.write_table(TABLE, sink, encryption=EncryptionProperties(FOOTER, {name: OWN}, plaintext_footer=True))
    keys = DecryptionProperties(FOOTER, {name: OWN})
    assert pyparq.read_table(sink.getvalue(), decryption=keys).to_pylist() == TABLE.to_pylist()
    with pyparq.ParquetFile(sink.getvalue(), decryption=DecryptionProperties(FOOTER)) as file:
        group = file.metadata.row_group(0)
        encrypted = [leaf.path for leaf in file.tree.leaves if group.column_encryption(leaf.path) is not None]
        below = file.tree.find(name)
        assert encrypted == [leaf.path for leaf in below.leaves()]


def test_a_key_is_of_the_column_that_was_meant() -> None:
    """Columns that print alike do not share a key, and a key does not serve a column of another path."""
    sink, other = io.BytesIO(), b"another-key-16by"
    keys = {("a", "b.c"): OWN, ("a", "b", "c"): other}
    pyparq.write_table(ALIKE, sink, encryption=EncryptionProperties(FOOTER, keys))
    assert (
        pyparq.read_table(sink.getvalue(), decryption=DecryptionProperties(FOOTER, keys)).to_pylist()
        == ALIKE.to_pylist()
    )
    with pytest.raises(ColumnNotFoundError, match=r"\('a', 'b\.c'\)"):
        pyparq.read_table(sink.getvalue(), decryption=DecryptionProperties(FOOTER, {"a.b.c": OWN}))


def test_master_keys_by_name(tmp_path: Path) -> None:
    kms = local_kms(kms_file(tmp_path / "kms.json"))
    config = EncryptionConfiguration("kf", {"kc1": [("s", "x.y"), "s.t.u.v"]}, plaintext_footer=True)
    factory = CryptoFactory(lambda connection: kms)
    sink = io.BytesIO()
    pyparq.write_table(TABLE, sink, encryption=factory.file_encryption_properties(None, config))
    with pyparq.ParquetFile(sink.getvalue(), decryption=factory.file_decryption_properties()) as file:
        group = file.metadata.row_group(0)
        assert [k for k in range(len(DOTTED)) if group.column_encryption(k) is not None] == [1, 2]
        assert file.read().to_pylist() == TABLE.to_pylist()
    with pytest.raises(OptionError, match="list of at least one column"):
        EncryptionConfiguration("k", {"m": [()]})


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> Path:
    path = tmp_path_factory.mktemp("names") / "t.parquet"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", ["s.t.u.v", 's.t."u.v"', '"s"."t"."u.v"', '"s.t.u.v"'])
def test_names_on_the_command_line(path: Path, name: str) -> None:
    rows = json.loads("[" + ",".join(run("query", path, "-c", name, "--json").splitlines()) + "]")
    assert rows == [{"s": {"t": {"u.v": str(k)}}} for k in range(ROWS)]
    assert run("query", path, "-c", "id", "-w", f"{name} = '4'", "--csv") == "id\n4\n"
    for command in ("schema", "meta", "pages", "index"):
        assert "u.v" in run(command, path, "-c", name)
    assert "s.t.u.v" in run("bloom", path, name) or "no " in run("bloom", path, name)


def test_lists_of_names() -> None:
    assert list_of_names('a, b.c ,"d,e",f."g,h.i", "x""y"."z"') == ["a", "b.c", "d,e", ("f", "g,h.i"), ('x"y', "z")]
    assert list_of_names('q"q,"plain"') == ['q"q', "plain"]
    assert list_of_names("a,") == ["a", ""]
    assert list_of_names("") == [""]
    assert one_name("a,b.c") == "a,b.c"
    assert one_name('a."b.c"') == ("a", "b.c")


def test_a_name_that_fits_nothing_in_deep_lists_ends() -> None:
    """Each list may be passed over or spelled out: all ways together would be more than could ever be tried."""
    from pyparq.format import ttypes as tt
    from pyparq.format.schema_tree import build_tree

    elements = [tt.SchemaElement(name="schema", num_children=1)]
    for _ in range(30):
        elements.append(tt.SchemaElement(name="element", num_children=1, repetition_type=0, converted_type=3))
        elements.append(tt.SchemaElement(name="element", num_children=1, repetition_type=2))
    elements.append(tt.SchemaElement(name="element", type=1, repetition_type=0))
    tree = build_tree(elements)
    assert tree.find(tree.leaves[0].dotted) is tree.leaves[0]
    with pytest.raises(ColumnNotFoundError, match="no column"):
        tree.find("element." * 50 + "x")
