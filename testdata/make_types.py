"""Make ``types/``: the types that the table of ``make_foreign.py`` lacks, as others write them.

    python testdata/make_types.py

Needs the peers and Java: parquet-java, which comes with pyspark, writes whatever a schema says, the old forms of lists
and maps included. pyparq takes no part. ``expected.json`` holds the Arrow type and the values of every column, bytes in
hexadecimal, times as whole nanoseconds, decimals and floats as text.
"""

from __future__ import annotations

import json
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "types"
POINT = bytes.fromhex("0101000000000000000000f03f0000000000000040")  # POINT (1 2) as WKB
UUID = bytes(range(16))
MONTHS_DAYS_MS = b"".join(n.to_bytes(4, "little") for n in (14, 3, 5250))
NULL_VARIANT = {"metadata": b"\1\0\0", "value": b"\0"}
WIDEST = "9" * 66 + "." + "9" * 10


def stated(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {name: stated(member) for name, member in value.items()}
    return [stated(item) for item in value] if isinstance(value, (list, tuple)) else value


# ---- parquet-java ----------------------------------------------------------------------------------------------------


def big_endian(number: int, width: int) -> bytes:
    return number.to_bytes(width, "big", signed=True)


JAVA: dict[str, tuple[str, str, list[Any], list[Any] | None]] = {
    # name: (Parquet type, Arrow type, values as they are stored, as they are read where that is something else)
    "enum": ("optional binary enum (ENUM)", "string", [b"red", None, b""], ["red", None, ""]),
    "json": ("optional binary json (JSON)", "string", [b'{"a": 1}', None, b"[]"], ['{"a": 1}', None, "[]"]),
    "bson": ("optional binary bson (BSON)", "binary", [b"\5\0\0\0\0", None, b""], None),
    "uuid": ("optional fixed_len_byte_array(16) uuid (UUID)", "fixed_size_binary[16]", [UUID, None, UUID[::-1]], None),
    "interval": ("optional fixed_len_byte_array(12) interval (INTERVAL)", "fixed_size_binary[12]",
                 [MONTHS_DAYS_MS, None, b"\xff" * 12], None),
    "half": ("optional fixed_len_byte_array(2) half (FLOAT16)", "float16", [b"\0\x3c", None, b"\0\xfc"],
             ["1.0", None, "-inf"]),
    "decimal_binary": ("optional binary decimal_binary (DECIMAL(30,5))", "decimal(30, 5)",
                       [big_endian(-1, 1), None, big_endian(10**30 - 1, 13)],
                       ["-0.00001", None, "9" * 25 + "." + "9" * 5]),
    "decimal_wide": ("optional fixed_len_byte_array(32) decimal_wide (DECIMAL(76,10))", "decimal256(76, 10)",
                     [big_endian(1 - 10**76, 32), None, bytes(32)], ["-" + WIDEST, None, "0." + "0" * 10]),
    "nothing": ("optional int32 nothing (UNKNOWN)", "null", [None] * 3, None),
    "time_utc": ("optional int64 time_utc (TIME(MICROS,true))", "time64[us]", [86_399_999_999, None, 2**32],
                 [86_399_999_999_000, None, 2**32 * 1000]),
    "ts_ns_utc": ("optional int64 ts_ns_utc (TIMESTAMP(NANOS,true))", "timestamp[ns, tz=UTC]",
                  [2**62, None, -(2**62)], None),
    "geometry": ("optional binary geometry (GEOMETRY(OGC:CRS84))", "binary", [POINT, None, POINT], None),
    "geography": ("optional binary geography (GEOGRAPHY(OGC:CRS84,SPHERICAL))", "binary", [POINT, None, POINT], None),
    "variant": ("optional group variant (VARIANT(1)) { required binary metadata; required binary value; }",
                "struct<metadata: binary, value: binary>", [NULL_VARIANT, None, NULL_VARIANT], None),
    "two_levels": ("optional group two_levels (LIST) { repeated int32 array; }", "list<array: int32>",
                   [{"array": [1, 2]}, None, {"array": []}], [[1, 2], None, []]),
    "tuples": ("optional group tuples (LIST) { repeated group tuples_tuple { required int32 n; } }",
               "list<tuples_tuple: struct<n: int32>>",
               [{"tuples_tuple": [{"n": 1}, {"n": 2}]}, None, {"tuples_tuple": []}],
               [[{"n": 1}, {"n": 2}], None, []]),
    "key_values": ("optional group key_values (MAP_KEY_VALUE) "
                   "{ repeated group map { required binary key (STRING); optional int32 value; } }",
                   "map<entries: struct<key: string, value: int32>>",
                   [{"map": [{"key": b"a", "value": 1}, {"key": b"b", "value": None}]}, None, {"map": []}],
                   [[["a", 1], ["b", None]], None, []]),
    "bare": ("repeated int32 bare", "list<element: int32>", [[1, 2], [], [3]], None),
    "bare_groups": ("repeated group bare_groups { required int32 n; optional binary s (STRING); }",
                    "list<element: struct<n: int32, s: string>>",
                    [[{"n": 1, "s": b"x"}, {"n": 2, "s": None}], [], []],
                    [[{"n": 1, "s": "x"}, {"n": 2, "s": None}], [], []]),
}  # fmt: skip


def by_parquet_java(path: Path) -> tuple[str, dict[str, Any]]:
    import pyspark
    from pyspark.sql import SparkSession

    java: Any = SparkSession.builder.master("local[1]").getOrCreate()._jvm
    parquet = java.org.apache.parquet
    text = "".join(f"{declared}{'' if declared.endswith('}') else ';'}\n" for declared, *_ in JAVA.values())
    schema = parquet.schema.MessageTypeParser.parseMessageType(f"message types {{\n{text}}}")
    groups = parquet.example.data.simple.SimpleGroupFactory(schema)

    def fill(group: Any, name: str, value: Any) -> None:
        for item in value if isinstance(value, list) else [] if value is None else [value]:
            if isinstance(item, dict):
                below = group.addGroup(name)
                for member, inner in item.items():
                    fill(below, member, inner)
            else:
                group.add(name, parquet.io.api.Binary.fromConstantByteArray(item) if isinstance(item, bytes) else item)

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "types.parquet"
        file = java.org.apache.hadoop.fs.Path(str(target))
        writer = parquet.hadoop.example.ExampleParquetWriter.builder(file).withType(schema).build()
        for row in range(3):
            group = groups.newGroup()
            for name, (_, _, values, _) in JAVA.items():
                fill(group, name, values[row])
            writer.write(group)
        writer.close()
        path.write_bytes(target.read_bytes())
    columns = {name: {"type": kind, "values": read or stored} for name, (_, kind, stored, read) in JAVA.items()}
    return f"parquet-java of pyspark {pyspark.__version__}", columns


# ---- DuckDB, pyarrow -------------------------------------------------------------------------------------------------

DUCKDB: dict[str, tuple[str, str, list[Any]]] = {
    # name: (SQL of a list of values, Arrow type, values as they are read)
    "uuid": (f"['{UUID.hex()}'::uuid, null, null]", "fixed_size_binary[16]", [UUID, None, None]),
    "interval": ("[interval '14 months 3 days 5.25 seconds', null, interval '0 days']", "fixed_size_binary[12]",
                 [MONTHS_DAYS_MS, None, bytes(12)]),
    "json": ("""['{"a": 1}'::json, null, '[]'::json]""", "string", ['{"a": 1}', None, "[]"]),
    "enum": ("['x'::enum('x', 'y'), null, 'y']", "string", ["x", None, "y"]),
    "time_utc": ("['10:00:00+02'::timetz, null, '00:00:00+00'::timetz]", "time64[us]", [8 * 3600 * 10**9, None, 0]),
    "time_ns": ("['10:00:00.123456789'::time_ns, null, null]", "time64[ns]", [36_000_123_456_789, None, None]),
    "arrays": ("[[1, 2]::int[2], null, [null, 3]::int[2]]", "list<element: int32>", [[1, 2], None, [None, 3]]),
    "nothing": ("[null, null, null]", "null", [None] * 3),
}  # fmt: skip


def by_duckdb(path: Path) -> tuple[str, dict[str, Any]]:
    import duckdb

    listed = ", ".join(f"unnest({values}) as {name}" for name, (values, *_) in DUCKDB.items())
    duckdb.sql(f"copy (select {listed}) to '{path}' (format parquet)")
    columns = {name: {"type": kind, "values": read} for name, (_, kind, read) in DUCKDB.items()}
    return f"duckdb {duckdb.__version__}", columns


def by_pyarrow(path: Path) -> tuple[str, dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    words, numbers = ["a", None, "b" * 30], [[1, 2], None, [3, None]]
    wide = [Decimal(WIDEST), None, Decimal("-0.0000000001")]
    columns: dict[str, tuple[pa.Array, str, list[Any]]] = {
        "uuid": (pa.array([UUID, None, UUID], pa.uuid()), "fixed_size_binary[16]", [UUID, None, UUID]),
        "json": (pa.array(['{"a": 1}', None, "[]"], pa.json_()), "string", ['{"a": 1}', None, "[]"]),
        "nothing": (pa.nulls(3), "null", [None] * 3),
        "decimal_wide": (pa.array(wide, pa.decimal256(76, 10)), "decimal256(76, 10)",
                         [v if v is None else f"{v:f}" for v in wide]),
        "zone": (pa.array([0, None, 10**6], pa.timestamp("us", "Europe/Berlin")), "timestamp[us, tz=Europe/Berlin]",
                 [0, None, 10**9]),
        "duration": (pa.array([1, None, -1], pa.duration("ms")), "duration[ms]", [10**6, None, -(10**6)]),
        "large": (pa.array(words, pa.large_string()), "large_string", words),
        "view": (pa.array(words, pa.string_view()), "string_view", words),
        "dictionary": (pa.array(words).dictionary_encode(), "dictionary<string>", words),
        "pairs": (pa.array(numbers, pa.list_(pa.field("element", pa.int8()), 2)), "fixed_size_list[2]<element: int8>",
                  numbers),
        "list_view": (pa.array(numbers, pa.list_view(pa.field("element", pa.int8()))), "list_view<element: int8>",
                      numbers),
    }  # fmt: skip
    pq.write_table(pa.table({name: array for name, (array, *_) in columns.items()}), path)
    return f"pyarrow {pa.__version__}", {n: {"type": kind, "values": read} for n, (_, kind, read) in columns.items()}


def main() -> None:
    HERE.mkdir(exist_ok=True)
    files = {}
    for name, write in {"parquet_java": by_parquet_java, "duckdb": by_duckdb, "pyarrow": by_pyarrow}.items():
        path = HERE / f"{name}.parquet"
        writer, columns = write(path)
        files[name] = {"writer": writer, "columns": columns}
        print(f"{path.name}: {path.stat().st_size:,} bytes")
    lines = json.dumps(stated(files), indent=1, ensure_ascii=False)
    (HERE / "expected.json").write_text(lines + "\n", "utf-8")


if __name__ == "__main__":
    main()
