"""Files whose dates and timestamps are in the hybrid calendar of old Spark, written here by hand; Spark's own are in
test_spark_calendar.py."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

import pyparq
from pyparq import UnsupportedError, col
from pyparq.cli import main

ZONE = "America/New_York"
SPARK = "org.apache.spark."
KEYS = {SPARK + "version": "3.5.0", SPARK + "legacyDateTime": "", SPARK + "timeZone": ZONE}
DAY = 86_400_000_000
EDGES = [-719164, -719163, -682945, -354221, -354220, -354219, -171600, -141438, -141428, -141427, -141426, 0, 19000]


def julian_day(day: int) -> tuple[int, int, int]:
    """Year, month and day of a day number by the hybrid calendar, counted year by year."""
    if day >= -141427:
        found = dt.date(1970, 1, 1) + dt.timedelta(days=day)
        return found.year, found.month, found.day
    cycles, rest = divmod(day + 719164, 1461)  # from 1 January 1, in fours of years
    year = 1 + 4 * cycles + min(rest // 365, 3)
    rest -= 365 * min(rest // 365, 3)
    for month in range(1, 13):
        length = 29 if month == 2 and year % 4 == 0 else [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
        if rest < length:
            return year, month, rest + 1
        rest -= length
    raise AssertionError("no such day")


def gregorian_day(day: int) -> int:
    year, month, number = julian_day(day)
    return (dt.date(year, month, 1) - dt.date(1970, 1, 1)).days + number - 1


def gregorian_us(us: int, zone: str = ZONE) -> int:
    """By clocks: what one of the zone's standard time showed, read in the zone's own time."""
    if us >= -2_208_988_800_000_000:
        return us
    standard = ZoneInfo(zone).utcoffset(dt.datetime(2019, 1, 1)) or dt.timedelta()
    day, time = divmod(us + int(standard.total_seconds()) * 1_000_000, DAY)
    wall = dt.datetime(1970, 1, 1) + dt.timedelta(days=gregorian_day(day), microseconds=time)
    later = wall.replace(tzinfo=ZoneInfo(zone), fold=1)  # clocks that were set back: the second time
    if later.astimezone(dt.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None) != wall:  # that were set forward
        later = later.replace(fold=0)
    return (later.astimezone(dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


def stored_days() -> list[int]:
    chosen = random.Random(7)
    near = [edge + k for edge in EDGES for k in (-1, 0, 1) if edge + k >= -719164]
    return near + [chosen.randrange(-719164, 20000) for _ in range(600)]


def stored_us() -> list[int]:
    chosen = random.Random(8)
    switch = -2_717_650_800_000_000  # when New York's standard time began
    near = [day * DAY + 5 * 3_600_000_000 + k for day in EDGES[1:] for k in (-1, 0, 1)]
    near += [switch + k for k in (-300_000_000, -1, 0, 1, 300_000_000)]
    return near + [chosen.randrange(-719000 * DAY, 20000 * DAY) for _ in range(600)]


def table(days: list[int], us: list[int]) -> pa.Table:
    rows = min(len(days), len(us))
    day = pa.array(days[:rows], pa.date32())
    ts = pa.array(us[:rows], pa.timestamp("us", "UTC"))
    nested = pa.StructArray.from_arrays([day, ts], ["day", "ts"])
    return pa.table(
        {
            "day": day,
            "ts": ts,
            "ms": pa.array([v // 1000 for v in us[:rows]], pa.timestamp("ms", "UTC")),
            "local": pa.array(us[:rows], pa.timestamp("us")),
            "nested": nested,
            "days": pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), day),
            "times": pa.MapArray.from_arrays(pa.array(range(rows + 1), pa.int32()), day, ts),
            "sparse": pa.array([v if k % 3 else None for k, v in enumerate(days[:rows])], pa.date32()),
        }
    )


@pytest.fixture(scope="module")
def legacy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("legacy") / "old.parquet"
    pyparq.write_table(
        table(stored_days(), stored_us()), path, row_group_size=200, max_rows_per_page=20, key_value_metadata=KEYS,
        bloom_filters=["day", "ts", "sparse"], use_dictionary=["day"],
    )  # fmt: skip
    return path


def ints(column: Any) -> list[int]:
    array = pa.chunked_array(column)
    return array.cast(pa.int32() if pa.types.is_date(array.type) else pa.int64()).to_pylist()


def test_values(legacy: Path) -> None:
    found = pyparq.read_table(legacy)
    rows = found.num_rows
    days, us = [gregorian_day(d) for d in stored_days()[:rows]], [gregorian_us(u) for u in stored_us()[:rows]]
    assert ints(found["day"]) == days
    assert ints(found["ts"]) == us
    assert ints(found["ms"]) == [gregorian_us(u // 1000 * 1000) // 1000 for u in stored_us()[:rows]]
    assert ints(found["local"]) == stored_us()[:rows]  # local times have no zone: Spark has no other calendar for them
    assert ints(found["sparse"]) == [d if k % 3 else None for k, d in enumerate(days)]
    arrow = pa.table(found)
    assert arrow["nested"].combine_chunks().field("day").cast(pa.int32()).to_pylist() == days
    assert arrow["nested"].combine_chunks().field("ts").cast(pa.int64()).to_pylist() == us
    assert arrow["days"].combine_chunks().flatten().cast(pa.int32()).to_pylist() == days
    times = arrow["times"].combine_chunks()
    assert times.keys.cast(pa.int32()).to_pylist() == days
    assert times.items.cast(pa.int64()).to_pylist() == us
    batches = list(pyparq.ParquetFile(legacy).iter_batches(64, columns=["day"]))
    assert [v for batch in batches for v in pa.record_batch(batch).column(0).cast(pa.int32()).to_pylist()] == days


def literals(values: list[int], chosen: random.Random) -> list[int]:
    return [chosen.choice(values) + chosen.choice((-1, 0, 0, 0, 1)) for _ in range(6)]


@pytest.mark.sweep(2)
@pytest.mark.parametrize("indexes", [True, False])
def test_filters(legacy: Path, indexes: bool) -> None:
    found = pyparq.read_table(legacy)
    options = {"use_statistics": indexes, "use_page_index": indexes, "use_bloom_filters": indexes}
    chosen = random.Random(3)
    for name, unit in (("day", "D"), ("ts", "us"), ("sparse", "D"), ("nested.day", "D"), ("nested.ts", "us")):
        leaf = pa.table(found)[name.split(".")[0]].combine_chunks()
        leaf = leaf.field(name.split(".")[1]) if "." in name else leaf
        have = leaf.cast(pa.int32() if unit == "D" else pa.int64()).to_pylist()
        known = [v for v in have if v is not None]
        edges = {gregorian_day(d) * (1 if unit == "D" else DAY) for d in EDGES[::2]}
        for edge in [*sorted(edges), *literals(known, chosen)[:3]]:
            value, c = np.datetime64(edge, unit), col(name)
            more = [np.datetime64(v, unit) for v in literals(known, chosen)]
            among = {int(v.astype(np.int64)) for v in more}
            for condition, test in (
                (c == value, lambda v, e=edge: v == e), (c != value, lambda v, e=edge: v != e),
                (c < value, lambda v, e=edge: v < e), (c <= value, lambda v, e=edge: v <= e),
                (c > value, lambda v, e=edge: v > e), (c >= value, lambda v, e=edge: v >= e),
                (c.isin(more), lambda v, among=among: v in among),
                (~c.isin(more), lambda v, among=among: v not in among),
            ):  # fmt: skip
                want = [v for v in have if v is not None and test(v)]
                with pyparq.ParquetFile(legacy, **options) as file:
                    assert file.scan(["day"], condition).count() == len(want), (str(condition), edge)
                    rows = pa.table(file.read(["day", name.split(".")[0]], condition))
                read = rows[name.split(".")[0]].combine_chunks()
                read = read.field(name.split(".")[1]) if "." in name else read
                assert read.cast(pa.int32() if unit == "D" else pa.int64()).to_pylist() == want, (str(condition), edge)


def test_items_of_lists(legacy: Path) -> None:
    days = [gregorian_day(d) for d in stored_days()]
    rows = pyparq.read_metadata(legacy).num_rows
    twice = gregorian_day(-354220)  # 1 March 1000: both 29 February and 1 March as they are stored
    assert sorted({d for d in stored_days() if gregorian_day(d) == twice}) == [-354221, -354220]
    for day in (twice, days[50], gregorian_day(-171600), twice - 5000):
        literal = np.datetime64(day, "D")
        with pyparq.ParquetFile(legacy) as file:
            assert file.scan(["day"], col("days").contains(literal)).count() == days[:rows].count(day)
            assert file.scan(["day"], ~col("days").contains(literal)).count() == rows - days[:rows].count(day)


def test_indexes_are_used(tmp_path: Path) -> None:
    data = table(sorted(stored_days()), sorted(stored_us()))
    pyparq.write_table(data, tmp_path / "x", row_group_size=200, max_rows_per_page=20, key_value_metadata=KEYS)
    pyparq.write_table(data, tmp_path / "bloom", row_group_size=200, key_value_metadata=KEYS, bloom_filters=["sparse"])
    with pyparq.ParquetFile(tmp_path / "x") as file:
        for condition, most in (
            (col("day") == dt.date(1582, 10, 10), 0),  # no day of the hybrid calendar
            (col("day") == np.datetime64(gregorian_day(-354220), "D"), 40),
            (col("ts") < np.datetime64(gregorian_us(sorted(stored_us())[30]), "us"), 40),
            (col("ts") > dt.datetime(2500, 1, 1), 0),
        ):
            found = file.scan(["day"], condition).explain()
            assert found.candidate_rows <= most, str(found)
            assert (found.rows or 0) > 0 or most == 0
    with pyparq.ParquetFile(tmp_path / "bloom", use_statistics=False, use_page_index=False) as file:
        absent = next(d for d in range(-300000, 0) if d not in set(map(gregorian_day, stored_days())))
        found = file.scan(["day"], col("sparse") == np.datetime64(absent, "D")).explain()
        assert found.candidate_rows <= 200, str(found)


def test_bounds_are_gregorian(legacy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [gregorian_day(d) for d in stored_days()[:200]]
    with pyparq.ParquetFile(legacy) as file:
        bounds = file.metadata.row_group(0).column("day").bounds
        assert (int(bounds.mins[0]), int(bounds.maxs[0])) == (min(rows), max(rows))
        pages = file.column_index(0, "ts")
        us = [gregorian_us(u) for u in stored_us()[:200]]
        assert pages is not None
        for k in range(len(pages)):
            part = us[20 * k : 20 * k + 20]
            assert pages.mins[k] <= min(part)
            assert pages.maxs[k] >= max(part)
    assert main(["index", str(legacy), "--columns", "day", "--json"]) == 0
    assert str(np.datetime64(min(rows[:20]), "D")) in capsys.readouterr().out


def test_a_rewrite_is_gregorian(legacy: Path, tmp_path: Path) -> None:
    before = pa.table(pyparq.read_table(legacy))
    pyparq.rewrite(legacy, tmp_path / "new.parquet")
    pyparq.write_table(pyparq.read_table(legacy), tmp_path / "copy.parquet")
    for name in ("new.parquet", "copy.parquet"):
        keys = pyparq.read_metadata(tmp_path / name).metadata
        assert not {(SPARK + key).encode() for key in ("legacyDateTime", "timeZone")} & keys.keys()
        assert pa.table(pyparq.read_table(tmp_path / name)).equals(before)
        import pyarrow.parquet as pq  # knows no other calendar

        assert ints(pq.read_table(tmp_path / name, columns=["day"])["day"]) == ints(before["day"])


def test_indexes_are_added_to_stored_values(legacy: Path, tmp_path: Path) -> None:
    pyparq.write_table(table(stored_days(), stored_us()), tmp_path / "bare", key_value_metadata=KEYS)
    pyparq.add_indexes(tmp_path / "bare", bloom_filters=["day", "ts"])
    assert pyparq.read_metadata(tmp_path / "bare").metadata[(SPARK + "legacyDateTime").encode()] == b""
    day = np.datetime64(gregorian_day(-354220), "D")
    assert pyparq.read_table(tmp_path / "bare", filters=col("day") == day).num_rows >= 2
    assert pyparq.verify(tmp_path / "bare").ok
    assert pyparq.verify(legacy).ok


def test_a_dataset_of_both_calendars(tmp_path: Path) -> None:
    day, old = -171600, gregorian_day(-171600)
    for k in range(6):
        keys = KEYS if k % 2 else {SPARK + "version": "3.5.0"}
        data = pa.table({"k": [k], "day": pa.array([day], pa.date32())})
        pyparq.write_table(data, tmp_path / f"{k}.parquet", key_value_metadata=keys, bloom_filters=["day"])
    dataset = pyparq.dataset(tmp_path)
    assert ints(dataset.read()["day"]) == [day, old] * 3
    for value, rows in ((day, [0, 2, 4]), (old, [1, 3, 5])):
        literal = np.datetime64(value, "D")
        assert dataset.read(filters=col("day") == literal)["k"].to_pylist() == rows
        assert dataset.lookup("day", [literal])["k"].to_pylist() == rows
        assert dataset.count(col("day") == literal) == 3
    assert dataset.count(col("day") > np.datetime64(day, "D")) == (3 if old > day else 0)
    pyparq.rewrite(dataset, tmp_path / "one.parquet", sort_by=["k"])
    assert ints(pyparq.read_table(tmp_path / "one.parquet")["day"]) == [day, old] * 3


@pytest.mark.parametrize(
    ("keys", "moved"),
    [
        ({SPARK + "version": "2.4.8"}, True),
        ({SPARK + "version": "3.1.2", SPARK + "legacyDateTime": ""}, True),
        ({SPARK + "version": "3.1.2"}, False),
        ({SPARK + "version": "3.1.2", SPARK + "legacyINT96": ""}, False),
        ({SPARK + "legacyDateTime": ""}, False),  # as Spark: a file without its version is not its own
    ],
)
def test_which_files_are_legacy(tmp_path: Path, keys: dict[str, str], moved: bool) -> None:
    data = pa.table({"day": pa.array([-171600], pa.date32())})
    pyparq.write_table(data, tmp_path / "x", key_value_metadata=keys)
    assert (ints(pyparq.read_table(tmp_path / "x")["day"]) != [-171600]) is moved


def test_int96(tmp_path: Path) -> None:
    us = [-14_831_000_000_000_000, -62_135_000_000_000_000, 0, 1_700_000_000_000_001]
    data = pa.table({"ts": pa.array(us, pa.timestamp("us"))})
    keys = {SPARK + "version": "3.5.0", SPARK + "legacyINT96": "", SPARK + "timeZone": ZONE}
    pyparq.write_table(data, tmp_path / "x", key_value_metadata=keys, int96_timestamps=["ts"])
    options: dict[str, Any] = {"coerce_int96_timestamp_unit": "us"}
    assert ints(pyparq.read_table(tmp_path / "x", **options)["ts"]) == list(map(gregorian_us, us))
    for value in map(gregorian_us, us):
        same = col("ts") == np.datetime64(value, "us")
        assert pyparq.read_table(tmp_path / "x", filters=same, **options).num_rows == 1


def test_no_zone_in_the_file_means_that_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    data = pa.table({"ts": pa.array([-14_831_000_000_000_000], pa.timestamp("us", "UTC"))})
    pyparq.write_table(data, tmp_path / "x", key_value_metadata={SPARK + "version": "2.4.8"})
    for zone in ("Europe/Berlin", "Asia/Tokyo"):
        with monkeypatch.context() as patch:
            patch.setenv("TZ", zone)
            time.tzset()
            assert ints(pyparq.read_table(tmp_path / "x")["ts"]) == [gregorian_us(-14_831_000_000_000_000, zone)]
        time.tzset()


def test_an_unknown_zone_is_named(tmp_path: Path) -> None:
    keys = {**KEYS, SPARK + "timeZone": "Mars/Olympus"}
    for us in (-14_831_000_000_000_000, 0):
        data = pa.table({"ts": pa.array([us], pa.timestamp("us", "UTC"))})
        pyparq.write_table(data, tmp_path / str(us), key_value_metadata=keys)
    with pytest.raises(UnsupportedError, match=r"Mars/Olympus.*column ts"):
        pyparq.read_table(tmp_path / "-14831000000000000")
    with pytest.raises(UnsupportedError, match=r"Mars/Olympus.*column ts"):
        pyparq.read_table(tmp_path / "0", filters=col("ts") < "1700-01-01")
    assert ints(pyparq.read_table(tmp_path / "0", filters=col("ts") > "1950-01-01")["ts"]) == [0]
