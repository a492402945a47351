"""The plan is what runs: its options, its page reads and nothing else, on the file that it was made for."""

from __future__ import annotations

import io
import pickle
import random
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from counting import CountingFile
from pruning_oracle import FILES, expression, file_bytes, random_tree
from written import written

import pyparq
from pyparq import col
from pyparq.errors import ChecksumError, CorruptIndexWarning, DataError, LimitError, PlanError
from pyparq.index.row_ranges import RowRanges
from pyparq.limits import Limits
from pyparq.read.plan import scan_plan as plans
from pyparq.read.plan.page_reads import ColumnRead, Pages
from pyparq.read.plan.scan_plan import ScanPlan

ROWS, GROUP = 6_000, 2_000


@lru_cache
def data() -> bytes:
    """Three row groups; ``id`` is sorted, ``key`` shuffled."""
    rng = np.random.default_rng(4)
    table = pa.table(
        {
            "id": np.arange(ROWS),
            "key": rng.permutation(ROWS),
            "word": [f"w{k % 37}" for k in range(ROWS)],
            "text": [f"{k:x}" * 5 for k in rng.integers(0, 1 << 40, ROWS)],
            "list": [list(range(k % 4)) for k in range(ROWS)],
        }
    )
    sink = io.BytesIO()
    pyparq.write_table(table, sink, row_group_size=GROUP, max_rows_per_page=100, bloom_filters=["key", "text"])
    return sink.getvalue()


QUESTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "everything": dict,
    "a part by its bounds": lambda: {"filters": col("id").between(700, 2_350)},
    "undecided everywhere": lambda: {"filters": col("key") > 5_900},
    "columns that the filter has not": lambda: {
        "columns": ["text", "list"],
        "filters": col("key").isin([5, 77, 4_000]),
    },
    "a word": lambda: {"columns": ["id", "word"], "filters": (col("word") == "w5") & (col("id") > 3_000)},
    "no row": lambda: {"filters": col("key") == -1},
    "rows": lambda: {"columns": ["key", "list"], "rows": [3, 500, 501, 4_321]},
    "a limit": lambda: {"columns": ["id"], "limit": 2_150},
    "a limit of what matches": lambda: {"filters": col("key") < 3_000, "limit": 1_300},
    "no columns": lambda: {"columns": [], "filters": col("key") < 50},
}


def planned(source: Any = None, **question: Any) -> ScanPlan:
    with pyparq.ParquetFile(data() if source is None else source) as file:
        return file.scan(**question).plan()


def sent(plan: Any) -> Any:
    return pickle.loads(pickle.dumps(plan))


def bytes_of(ranges: Any) -> set[int]:
    return {byte for offset, length in ranges for byte in range(offset, offset + length)}


def all_reads(plan: ScanPlan) -> list[ColumnRead]:
    return [read for group in plan.row_groups for read in group.reads]


# ---- what is read


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_planned_ranges_are_read_and_no_index(name: str) -> None:
    question = QUESTIONS[name]()
    with pyparq.ParquetFile(data(), coalesce_gap=0) as file:
        scan = file.scan(**question)
        plan, expected = sent(scan.plan()), scan.to_table().to_arrow()
    outside = CountingFile(data())
    with pyparq.ParquetFile(outside, tail_size=8) as file:
        opened = len(outside.reads)
        found = file.execute(plan).to_arrow()
    assert found.equals(expected)
    ranges = [r for read in all_reads(plan) for r in read.ranges]
    allowed = bytes_of(ranges) | bytes_of(r for read in all_reads(plan) for r in unnarrowed(read))
    got = bytes_of(outside.reads[opened:])
    assert got <= allowed
    assert sum(length for _, length in outside.reads[opened:]) == len(got), "a byte was read twice"
    first = bytes_of(r for group in plan.row_groups for read in group.filter_reads for r in read.ranges)
    if question.get("limit") is None:
        assert first <= got
    if not any(group.filter_reads for group in plan.row_groups):
        assert got == bytes_of(ranges)


def unnarrowed(read: ColumnRead) -> list[tuple[int, int]]:
    return replace(read, whole=None).ranges if read.pages is not None else []


def test_no_page_without_a_row_that_matched() -> None:
    """``key`` is no help to any index: its pages are all read; of ``text`` those with the rows that were found."""
    with pyparq.ParquetFile(data(), use_bloom_filters=False, coalesce_gap=0) as file:
        plan = sent(file.scan(["text"], col("key").isin([5, 77, 4_000])).plan())
        rows = np.flatnonzero(np.isin(file.read(["key"]).to_numpy("key"), [5, 77, 4_000]))
        starts = {
            (group, row): offset
            for group in range(3)
            for offset, row in zip(*place_of(file, group, "text"), strict=True)
        }
    assert all(read.whole for read in all_reads(plan))
    outside = CountingFile(data())
    with pyparq.ParquetFile(outside, tail_size=8) as file:
        opened = len(outside.reads)
        assert file.execute(plan).num_rows == 3
    expected = {starts[row // GROUP, row % GROUP // 100 * 100] for row in rows.tolist()}
    got = bytes_of(outside.reads[opened:])
    assert {start for start in starts.values() if start in got} == expected


def place_of(file: pyparq.ParquetFile, group: int, column: str) -> tuple[list[int], list[int]]:
    """Offsets and first rows of the pages."""
    found = file.page_locations(group, column)
    assert found is not None
    return found.offsets.tolist(), found.first_rows.tolist()


def test_the_footer_is_read_again_and_that_is_all() -> None:
    """One request opens the file; one more per range of pages."""
    plan = sent(planned(filters=col("id").between(2_100, 2_150), columns=["id"]))
    outside = CountingFile(data())
    with pyparq.ParquetFile(outside) as file:
        assert outside.requests == 1
        assert file.execute(plan).num_rows == 51
    (read,) = all_reads(plan)
    assert outside.reads[1:] == [(read.ranges[0][0], sum(length for _, length in read.ranges))]


def test_planning_asks_for_all_page_locations_at_once() -> None:
    """Of three row groups and three columns, in one request for near ones."""
    outside = CountingFile(data())
    with pyparq.ParquetFile(outside, tail_size=8, coalesce_gap=1 << 20, use_bloom_filters=False) as file:
        scan = file.scan(["id", "text"], col("key") > 5_900)
        scan.explain(execute=False)
        before = outside.requests
        plan = scan.plan()
        assert outside.requests == before + 1
        again = scan.plan()
        assert outside.requests == before + 1
        assert repr((again.header, again.row_groups)) == repr((plan.header, plan.row_groups))
    assert all(read.pages is not None for group in plan.row_groups for read in group.output_reads)


@pytest.mark.parametrize("name", FILES)
def test_random_plans(name: str) -> None:
    """Through pickles and in parts, the rows of the scan."""
    rng, some = random.Random(11), 0
    with pyparq.ParquetFile(file_bytes(name)) as file:
        for k in range(60):
            filters, limit = expression(random_tree(rng)), rng.choice([None, None, 3, 40])
            scan = file.scan(["row", "s"], filters, limit=limit)
            expected = scan.to_table().to_pydict()
            plan = sent(file.scan(["row", "s"], filters, limit=limit).plan())
            assert file.execute(plan).to_pydict() == expected, (k, filters)
            parts = [sent(part) for part in plan.split(rng.choice([None, 1, 2]))]
            assert plan.join(file.execute(part) for part in parts).to_pydict() == expected
            some += len(expected["row"])
    assert some > 1_000


# ---- options


def test_options_are_the_plans() -> None:
    plan = sent(planned_with({"binary_columns": ["word"], "read_dictionary": ["text"]}, columns=["word", "text"]))
    with pyparq.ParquetFile(data()) as file:
        table = file.execute(plan).to_arrow()
        assert file.read(["word"]).to_arrow().schema.field("word").type == pa.string()
    assert table.schema.types == [pa.binary(), pa.dictionary(pa.int32(), pa.string())]
    plain = sent(planned(columns=["word", "text"]))
    with pyparq.ParquetFile(data(), binary_columns=["word"], read_dictionary=["text"]) as file:
        assert file.execute(plain).to_arrow().schema.types == [pa.string(), pa.string()]


def planned_with(options: dict[str, Any], **question: Any) -> ScanPlan:
    with pyparq.ParquetFile(data(), **options) as file:
        return file.scan(**question).plan()


def test_a_filter_of_bytes_on_binary_columns() -> None:
    plan = sent(planned_with({"binary_columns": ["word"]}, columns=["id"], filters=col("word") == b"w36"))
    with pyparq.ParquetFile(data()) as file:
        assert file.execute(plan).num_rows == ROWS // 37


def test_the_gap_is_the_plans() -> None:
    plans = [sent(planned_with({"coalesce_gap": gap}, columns=["id"], rows=[5, 950])) for gap in (0, 1 << 20)]
    requests = []
    for plan in plans:
        outside = CountingFile(data())
        with pyparq.ParquetFile(outside, coalesce_gap=0 if plan is plans[1] else 1 << 20) as file:
            file.execute(plan)
        requests.append(outside.requests)
    assert requests == [3, 2]


def test_checksums_are_checked_as_planned() -> None:
    whole = written({"a": np.arange(1_000)}, compression="none", column_encoding="PLAIN")
    with pyparq.ParquetFile(whole) as file, pyparq.ParquetFile(whole, verify_checksums=False) as trusting:
        careful, careless = file.scan().plan(), trusting.scan().plan()
    broken = bytearray(whole)
    broken[all_reads(careful)[0].ranges[0][0] + 2_000] ^= 1
    with pyparq.ParquetFile(bytes(broken), verify_checksums=False) as file, pytest.raises(ChecksumError):
        file.execute(careful)
    with pyparq.ParquetFile(bytes(broken)) as file:
        assert file.execute(careless).num_rows == 1_000


def test_limits_are_the_executing_files() -> None:
    plan = sent(planned(columns=["text"]))
    with (
        pyparq.ParquetFile(data(), limits=Limits(max_page=1_000)) as file,
        pytest.raises(LimitError, match=r"more than limits\.max_page"),
    ):
        file.execute(plan)
    capped = planned_with({"limits": Limits(max_page=1_000), "use_threads": False}, columns=["text"])
    assert (capped.options.limits, capped.options.use_threads) == (Limits(), True)
    with pyparq.ParquetFile(data(), use_threads=False) as file:
        scan = file.scan_of(sent(capped))
        assert scan.to_table().num_rows == ROWS
        assert scan.file.options.use_threads is False


def test_a_scan_of_a_plan_does_what_scans_do() -> None:
    question: dict[str, Any] = {"columns": ["id"], "filters": col("key") < 100}
    with pyparq.ParquetFile(data()) as file:
        scan = file.scan_of(sent(planned(**question)))
        expected = file.scan(**question).to_table().to_pydict()
        assert scan.count() == 100
        assert [v for b in scan.iter_batches(7) for v in b.to_table().to_pydict()["id"]] == expected["id"]
        assert scan.explain().rows == 100
        assert pickle.dumps(file.scan_of(scan.plan()).plan()) == pickle.dumps(scan.plan())


# ---- plans that do not fit


def altered(plan: ScanPlan, change: Callable[[ColumnRead], ColumnRead | None]) -> ScanPlan:
    def of(reads: tuple[ColumnRead, ...]) -> tuple[ColumnRead, ...]:
        return tuple(new for read in reads if (new := change(read)) is not None)

    groups = (replace(g, filter_reads=of(g.filter_reads), output_reads=of(g.output_reads)) for g in plan.row_groups)
    return replace(plan, row_groups=tuple(groups))


def with_arrays(read: ColumnRead, **change: Callable[[Any], Any]) -> ColumnRead:
    assert read.pages is not None
    arrays = {name: getattr(read.pages, name) for name in Pages.__slots__}
    pages = Pages(**{**arrays, **{name: of(arrays[name].copy()) for name, of in change.items()}})
    return replace(read, pages=pages)


ALTERED: dict[str, Callable[[ColumnRead], ColumnRead | None]] = {
    "no reads": lambda read: None,
    "no pages": lambda read: replace(read, pages=None, dictionary=None),
    "empty pages": lambda read: replace(read, pages=read.pages.at(slice(0, 0)), dictionary=None, num_rows=0),
    "a page less": lambda read: replace(
        read, pages=read.pages.at(slice(1, None)), num_rows=read.num_rows - int(read.pages.num_rows[0])
    ),
    "beyond the file": lambda read: with_arrays(read, offsets=lambda a: a + (1 << 40)),
    "before the file": lambda read: with_arrays(read, offsets=lambda a: a - (1 << 40)),
    "in another column": lambda read: with_arrays(read, offsets=lambda a: a + 20_000),
    "of no bytes": lambda read: with_arrays(read, sizes=lambda a: a * 0),
    "of too many bytes": lambda read: with_arrays(read, sizes=lambda a: a + (1 << 62)),
    "one over the other": lambda read: with_arrays(read, offsets=lambda a: a * 0 + a[0]),
    "rows from nowhere": lambda read: with_arrays(read, first_rows=lambda a: a + GROUP),
    "rows before the first": lambda read: with_arrays(read, first_rows=lambda a: a - GROUP),
    "another row group": lambda read: replace(read, row_group=0),
    "another column": lambda read: replace(read, column=2),
    "a column that is not there": lambda read: replace(read, column=200),
    "a dictionary elsewhere": lambda read: replace(read, dictionary=(4, 100)),
    "more than the chunk": lambda read: replace(read, whole=(4, 1 << 40)),
}  # fmt: skip


@pytest.mark.parametrize("name", ALTERED)
def test_an_altered_plan_is_refused(name: str) -> None:
    plan = planned(columns=["id", "key"], filters=col("id").between(2_100, 2_450))
    assert all(read.whole is None for read in all_reads(plan))
    outside = CountingFile(data())
    with pyparq.ParquetFile(outside) as file, pytest.raises(PlanError):
        file.execute(altered(plan, ALTERED[name]))
    assert outside.requests == 1


def test_altered_rows_are_refused() -> None:
    plan = planned(columns=["id"], filters=col("id").between(2_100, 2_450))
    (group,) = plan.row_groups
    wider = RowRanges.all(GROUP)
    for change in (
        {"maybe": wider}, {"sure": wider}, {"within": ~group.maybe}, {"row_group": 3}, {"num_rows": GROUP + 1},
    ):  # fmt: skip
        bad = replace(plan, row_groups=(replace(group, **change),))
        with pyparq.ParquetFile(data()) as file, pytest.raises(PlanError):
            file.execute(bad)
    with pyparq.ParquetFile(data()) as file, pytest.raises(PlanError, match="twice"):
        file.execute(replace(plan, row_groups=(group, group)))


def test_a_plan_says_what_it_was_made_for(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(data())
    plan = planned(path, filters=col("id") < 10)
    assert plan.made_for.size == len(data())
    assert f"{len(data()):,} bytes, footer checksum {plan.made_for.checksum:08x}" in str(plan)
    elsewhere = tmp_path / "copy.parquet"
    elsewhere.write_bytes(data())
    with pyparq.ParquetFile(elsewhere) as file:
        assert file.execute(sent(plan)).num_rows == 10
    pyparq.write_table(pyparq.read_table(path).slice(1), path)
    with (
        pyparq.ParquetFile(path) as file,
        pytest.raises(PlanError, match=r"changed since the plan was made.*make the plan again"),
    ):
        file.execute(sent(plan))


def test_a_page_that_contradicts_the_plan() -> None:
    """Its row group is read again without page locations, and a warning says so."""
    plan = planned(columns=["id", "key"], filters=(col("id") > 2_100) & (col("key") < 5_000))
    shifted = altered(plan, lambda read: with_arrays(
        read, num_rows=lambda a: moved(a, -10), first_rows=lambda a: moved(a, 0, -10)
    ) if read.name == "key" and read.pages is not None else read)  # fmt: skip
    assert shifted.row_groups != plan.row_groups
    with pyparq.ParquetFile(data()) as file:
        expected = file.execute(plan).to_pydict()
        with pytest.warns(CorruptIndexWarning, match="page indexes cannot be read"):
            assert file.execute(sent(shifted)).to_pydict() == expected


def moved(array: Any, by: int, second: int | None = None) -> Any:
    """The edge between the first two pages, moved by ten rows."""
    if second is None:
        array[0] += by
        array[1] -= by
    else:
        array[1] += second
    return array


# ---- pickles


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(filters=col("id") < 10)
    for value in (plan, plan.header, plan.row_groups[0]):
        monkeypatch.setattr(plans, "PLAN_VERSION", 2)
        raw = pickle.dumps(value)
        monkeypatch.undo()
        with pytest.raises(
            PlanError,
            match=r"another version of pyparq .*\(plan version 2, this pyparq reads version 1\): make the plan again",
        ):
            pickle.loads(raw)


def test_bytes_per_page() -> None:
    """Pages side by side, and every third page: numbers, not objects."""
    count = 6_000
    table = {"a": np.arange(count * 10), "b": np.random.default_rng(1).random(count * 10)}
    with pyparq.ParquetFile(written(table, max_rows_per_page=10, use_dictionary=False)) as file:
        side = file.scan(["a", "b"], col("b") > 0.5).plan()
        apart = file.scan(["b"], rows=np.arange(0, count * 10, 30)).plan()
    (both,), (third,) = side.row_groups, apart.row_groups
    assert [len(read.pages or ()) for read in both.output_reads] > [5_900]
    assert [len(read.pages or ()) for read in third.reads] == [count // 3]
    assert len(pickle.dumps(side)) < 5 * (2 * count)  # of both columns
    assert len(pickle.dumps(apart)) < 20 * count // 3  # row ranges included: as many as pages
    assert sent(side) == sent(sent(side)) or repr(sent(side)) == repr(side)
    assert sent(apart).row_groups == apart.row_groups


def test_a_long_isin_is_pickled_once() -> None:
    wanted = [f"{k:040d}" for k in range(2_000)] + ["w1"]
    plan = planned(columns=["id"], filters=col("word").isin(wanted))
    parts = plan.split()
    assert len(parts) == 3
    alone = len(pickle.dumps(plan.header))
    assert alone > 80_000
    assert len(pickle.dumps(parts)) < alone + 2_000
    assert sum(len(pickle.dumps(part.row_groups)) for part in parts) < 2_000
    header = sent(plan.header)
    with pyparq.ParquetFile(data()) as file:
        found = [file.execute(header.plan(sent(part.row_groups))) for part in parts]
        assert plan.join(found).to_pydict() == file.execute(plan).to_pydict()


# ---- parts


def test_a_limit_is_global() -> None:
    question: dict[str, Any] = {"columns": ["id"], "filters": col("key") < 3_000, "limit": 1_300}
    plan = planned(**question)
    with pyparq.ParquetFile(data()) as file:
        expected = file.scan(**question).to_table().to_pydict()
        results = [file.execute(sent(part)) for part in plan.split()]
    assert [r.num_rows <= 1_300 for r in results] == [True] * 3
    assert sum(r.num_rows for r in results) > 1_300
    joined = plan.join(results)
    assert joined.num_rows == 1_300
    assert joined.to_pydict() == expected
    assert plan.join(r.to_arrow() for r in results).to_pydict() == expected


def test_a_limit_without_a_filter_is_cut_by_planning() -> None:
    plan = planned(columns=["id"], limit=2_150)
    with pyparq.ParquetFile(data()) as file:
        results = [file.execute(sent(part)) for part in plan.split()]
    assert [r.num_rows for r in results] == [2_000, 150]
    assert plan.join(results).to_pydict() == {"id": list(range(2_150))}


def test_joining_asks_no_more_parts_than_it_takes() -> None:
    plan = planned(columns=["id"], filters=col("key") >= 0, limit=10)
    ran = []

    def run(file: Any) -> Any:
        for part in plan.split():
            ran.append(part)
            yield file.execute(part)

    with pyparq.ParquetFile(data()) as file:
        assert plan.join(run(file)).num_rows == 10
    assert len(ran) == 1


def test_parts() -> None:
    plan = planned(columns=["id", "text"])
    assert [[g.row_group for g in part.row_groups] for part in plan.split(2)] in ([[0, 1], [2]], [[0], [1, 2]])
    assert [len(part.row_groups) for part in plan.split(7)] == [1, 1, 1]
    assert [len(part.row_groups) for part in plan.split(1)] == [3]
    nothing = planned(filters=col("key") == -1)
    assert nothing.split() == [nothing]
    with pyparq.ParquetFile(data()) as file:
        assert nothing.join(map(file.execute, nothing.split())).schema == file.schema_arrow
    for parts in (0, -1):
        with pytest.raises(PlanError, match="parts must be at least 1"):
            plan.split(parts)


def test_results_that_do_not_join() -> None:
    plan = planned(columns=["id"])
    with pytest.raises(DataError, match="no results"):
        plan.join([])
    with pytest.raises(DataError, match="parts have different types"):
        plan.join([pa.table({"id": [1]}), pa.table({"id": ["a"]})])
    with pytest.raises(DataError, match="columns"):
        plan.join([pa.table({"id": [1]}), pa.table({"ix": [1]})])


def test_plans_of_files_of_others() -> None:
    """pyarrow's pages and dictionaries."""
    table = pa.table({"a": np.arange(50_000), "s": [f"v{k % 900}" for k in range(50_000)]})
    sink = io.BytesIO()
    pq.write_table(
        table, sink, row_group_size=20_000, data_page_size=4_096, write_batch_size=500, write_page_index=True
    )
    with pyparq.ParquetFile(sink.getvalue()) as file:
        for filters in (col("a").between(100, 21_000), col("s") == "v7", (col("a") > 30_000) & (col("s") < "v2")):
            plan = sent(file.scan(filters=filters).plan())
            assert file.execute(plan).to_arrow().equals(file.read(filters=filters).to_arrow())
