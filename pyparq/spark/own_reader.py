"""Spark's own reader for a planned read, where most of what its files hold is wanted.

Rows that pyparq decodes have to go from a Python process into the JVM; Spark's own reader decodes in the JVM. So a scan
of whole files is Spark's, and a read of little is pyparq's. The rows and types are the same: :func:`_reasons` lists
what Spark's reader reads otherwise, or not at all, and such a read is pyparq's.

What Spark's reader is asked to do: read the files that the plan has left, or the folder that they are in, in the types
that pyparq would give, check the checksums of pages, and apply the filter. Skipping is pyparq's: of the indexes, Spark
uses the statistics of row groups, and those not of floating-point columns, because they say nothing of NaN, which is
above all numbers in Spark.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from pyparq.datasets.common_schema import tree_of
from pyparq.datasets.data_files import DataFile
from pyparq.datasets.files import DatasetFiles
from pyparq.datasets.reader import FilePlan
from pyparq.datasets.scan import DatasetPlan, DatasetPlanHeader
from pyparq.errors import OptionError, UnsupportedError
from pyparq.filters.expression import AllOf, AnyOf, Compare, Expression, IsIn, IsNan, IsNull, Matches, Not, top_names
from pyparq.spark.own_fit import Fit, fit_of, sql_of
from pyparq.spark.session import is_connect
from pyparq.spark.types import SparkTypes

ENGINES = ("auto", "pyparq", "spark")

SHARE = 0.25
"""Of the rows of the files: from this share on, Spark's reader takes less time."""

_NAMED = 3
"""Files that Spark did not find as expected, which an error names."""


@dataclass(frozen=True)
class OwnRead:
    """A read by Spark's own reader."""

    paths: tuple[str, ...]
    files: tuple[str, ...] | None
    """All files that Spark must find in ``paths``. ``None``: these are the files."""
    base: str | None
    """The folder below which the names of folders are partition values; ``None`` where no such column is read."""
    types: Any
    """The columns of the result and of the condition, as Spark's schema (a ``StructType``)."""
    condition: str | None
    """The filter in Spark's SQL."""
    by_statistics: bool
    """Whether Spark may skip row groups by their statistics."""
    fit: Fit


# ---- which reader ----------------------------------------------------------------------------------------------------

Plans = Callable[[list[int]], Iterable[tuple[int, FilePlan]]]

MOST_PATHS = 32
"""Files that Spark is given one by one. Of more paths it makes a job, with a task for each."""


@dataclass(frozen=True)
class Wanted:
    """What a read wants of its files: by its plan, or, of many files, by what a few of them say."""

    header: DatasetPlanHeader
    numbers: Sequence[int]
    """Of the files that may have such rows."""
    rows: int = sys.maxsize
    """That may match; like the others, as much as there is where it is not known yet."""
    num_bytes: int = sys.maxsize
    """Of their pages."""
    expected: float = math.inf
    """Rows that match, about."""

    @classmethod
    def by(cls, plan: DatasetPlan, files: DatasetFiles) -> Wanted:
        names, rows = {file.name for file in plan.files}, plan.num_rows
        numbers = [k for k, file in enumerate(files.found.files) if file.name in names]
        sure = sum(group.sure.count for file in plan.files for group in file.row_groups)
        share = expected_share(plan.header.filters, {field.name for field in plan.header.partitions})
        return cls(plan.header, numbers, rows, plan.num_bytes, sure + (rows - sure) * share)

    def about(self, files: DatasetFiles, fit: Fit, plans: Plans) -> Wanted:
        """The same with numbers: of a filter by the plans of some files. ``fit``: of all of them."""
        rows = sum(map(files.num_rows_of, self.numbers))
        found = replace(self, rows=rows, num_bytes=fit.num_bytes * rows // max(fit.rows, 1), expected=float(rows))
        if self.header.filters is None:
            return found
        some = [self.numbers[k * len(self.numbers) // MOST_PATHS] for k in range(MOST_PATHS)]
        few = Wanted.by(self.header.plan((), (plan for _, plan in plans(some))), files)
        times = rows / max(sum(map(files.num_rows_of, some)), 1)
        rows, size = int(few.rows * times), int(few.num_bytes * times)
        return replace(found, rows=rows, num_bytes=size, expected=few.expected * times)

    def is_little(self, small: int) -> bool:
        few = self.num_bytes <= max(small, LITTLE_BYTES) and self.rows <= LITTLE_ROWS
        return few and len(self.numbers) <= LITTLE_FILES


def own_read(wanted: Wanted, files: DatasetFiles, question: Any, plans: Plans | None = None) -> OwnRead | str:
    """How Spark's reader reads what is wanted, or why pyparq does. ``plans``: makes the plans of some files, where it
    is not known yet how much is wanted."""
    header, listed = wanted.header, files.found.files
    why = next((text for holds, text in _reasons(wanted, files, question) if holds), None)
    if why is not None:
        return why
    try:
        types = SparkTypes(header.schema).spark
    except UnsupportedError:
        return "Spark has no type for a column"
    few = len(wanted.numbers) <= MOST_PATHS
    fit = fit_of(files, wanted.numbers if few else range(len(listed)), header, types)
    if fit.why is not None:
        return fit.why
    if question.engine == "auto":
        wanted = wanted if plans is None else wanted.about(files, fit, plans)
        share = wanted.expected / max(fit.rows, 1)
        if wanted.is_little(question.small):
            return "little is left"
        if share < SHARE:
            return f"about {share:.0%} of the rows of the files are left"
    needed, base = set(header.schema.names), _base(listed)
    tested = [header.schema.field(name).type for name in top_names(header.filters) & needed]
    places = [os.path.abspath(file.where) for file in listed]
    return OwnRead(
        tuple(places[k] for k in wanted.numbers) if few else (str(base),), None if few else tuple(places),
        base if any(field.name in needed for field in header.partitions) else None, types,
        _condition(header, question), not any(type_.is_nested or type_.format in _FLOATS for type_ in tested), fit,
    )  # fmt: skip


_FLOATS = ("e", "f", "g")


def _reasons(wanted: Wanted, files: DatasetFiles, question: Any) -> Iterator[tuple[bool, str]]:
    """All reasons why pyparq reads, and not Spark's reader, that need no footer, each with whether it holds: Spark's
    would give other rows or types, it could not read the files, or it would take longer."""
    header, listed, is_auto = wanted.header, files.found.files, question.engine == "auto"
    few = len(wanted.numbers) <= MOST_PATHS
    needed = set(header.schema.names)
    named = {field.name for field in header.partitions} & needed
    yield question.engine == "pyparq", 'engine="pyparq"'
    yield question.counts, "only rows are counted"
    yield not wanted.numbers, "no row is left"
    yield is_auto and wanted.is_little(question.small), "little is left"
    yield question.decryption is not None, "decryption= is given"
    yield question.on_error != "raise", "files that cannot be read are left out"
    yield question.truncate, "truncate= is given"
    yield question.parts is not None, "partitions= is given"
    yield set(question.options) != {"case_sensitive"}, "an option is given that only pyparq has"
    yield files.table is not None, "the log of a table says which rows there are"
    yield bool(files.found.unfinished or files.found.store_writes), "a write has not ended"
    yield any("://" in str(file.where) for file in listed), "the files are in a store"
    yield not all(_is_plain(str(file.where)) for file in listed), "Spark reads a path or a name otherwise"
    yield _is_part(header), "a part of a nested column is read"
    yield needed == named, "no column of the files is read"
    yield bool(named) and not _has_hive_values(listed, named), "partition values are not in folders name=value"
    alike = ("i", "l", "u", "tdD")  # the types in which Spark's reader and pyparq read a folder's name alike
    unlike = any(header.schema.field(name).type.format not in alike for name in named)
    yield unlike, "Spark may read partition values otherwise"
    yield not few and _base(listed) is None, "the files are not in one folder"
    has_filter = header.filters is not None and not question.residual
    yield has_filter and _condition(header, question) is None, "the filter has no equal in Spark's SQL"
    yield is_auto and not few and len(wanted.numbers) < SHARE * len(listed), "few files are left"


LITTLE_BYTES, LITTLE_ROWS, LITTLE_FILES = 8 << 20, 100_000, 200
"""Bytes of pages, rows and files up to which Spark's reader is not asked: its job takes most of its time to start."""


def _is_plain(path: str) -> bool:
    """Whether Spark takes the path as it stands, and does not pass over the file as a hidden one."""
    name = os.path.basename(path)
    return re.search(r"[\[\]{}*?\\:%\x00-\x1f]", path) is None and not name.startswith(("_", "."))


def _is_part(header: DatasetPlanHeader) -> bool:
    """Whether a column of the result is only a part of one, or is called otherwise."""
    own = {field.name: field.type for field in header.schema}
    return any(own.get(field.name) != field.type for field in header.result)


def _base(files: Sequence[DataFile]) -> str | None:
    """The folder that all files are in, below the folders that are theirs."""
    found = set()
    for folder, folders in {(os.path.dirname(file.where), file.folders) for file in files}:
        folder, own = os.path.abspath(folder), "/".join(folders)
        if own and not folder.endswith(f"/{own}"):
            return None
        found.add(folder[: -len(own) - 1] if own else folder)
    return found.pop() if len(found) == 1 else None


def _has_hive_values(files: Sequence[DataFile], names: set[str]) -> bool:
    """Whether each file has these partition values in its folders, once, and no other folders."""
    if _base(files) is None:
        return False
    for folders in {file.folders for file in files}:
        keys = Counter(folder.partition("=")[0] for folder in folders)
        if not all("=" in folder for folder in folders) or names - keys.keys() or max(keys.values(), default=0) > 1:
            return False
    return not any(file.above for file in files)


def _condition(header: DatasetPlanHeader, question: Any) -> str | None:
    """The filter in Spark's SQL; ``None`` where there is none, or where it has no equal."""
    filters = header.filters
    if filters is None or question.residual:
        return None
    return question.filters if isinstance(question.filters, str) else sql_of(filters, tree_of(header.schema))


# ---- how many rows --------------------------------------------------------------------------------------------------

EQUAL, RANGE, OTHER = 0.1, 1 / 3, 0.5
"""Shares of rows that one comparison is taken to leave, as System R took them (Selinger and others, "Access Path
Selection in a Relational Database Management System", 1979)."""


def expected_share(expression: Expression | None, settled: Set[str] = frozenset()) -> float:
    """The share of rows that a filter may leave, where nothing is known but its form: from 0 to 1. ``settled``: columns
    of which all tests that must pass do."""
    if expression is None or top_names(expression) <= settled:
        return 1.0
    if isinstance(expression, AllOf):
        return math.prod(expected_share(child, settled) for child in expression.children)
    if isinstance(expression, AnyOf):
        return 1 - math.prod(1 - expected_share(child) for child in expression.children)
    if isinstance(expression, Not):
        return 1 - expected_share(expression.child)
    if isinstance(expression, Compare):
        return {"==": EQUAL, "!=": 1 - EQUAL}.get(expression.op, RANGE)
    if isinstance(expression, IsIn):
        return min(EQUAL * len(expression.values), OTHER)
    return EQUAL if isinstance(expression, (IsNull, IsNan, Matches)) else OTHER


# ---- the frame -------------------------------------------------------------------------------------------------------

_SETTINGS = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.fieldId.read.enabled": "false",
}
"""Settings by which Spark's reader reads as pyparq does. They are its defaults."""


def own_frame(spark: Any, read: OwnRead, result: Sequence[str]) -> Any | str:
    """The DataFrame of Spark's reader with the columns ``result``; or why there is none."""
    from pyspark.errors import PySparkException

    for name, value in _SETTINGS.items():
        if str(spark.conf.get(name)).lower() != value.lower():
            return f"{name} is {spark.conf.get(name)}"
    checks = {"parquet.page.verify-checksum.enabled": "true", "ignoreCorruptFiles": "false",
              "ignoreMissingFiles": "false", "recursiveFileLookup": "false",
              "parquet.filter.columnindex.enabled": "false", "parquet.filter.bloom.enabled": "false",
              "parquet.filter.dictionary.enabled": "false",
              "parquet.filter.stats.enabled": str(read.by_statistics).lower()}  # fmt: skip
    if read.base is not None:
        checks["basePath"] = read.base
    try:
        frame = spark.read.schema(read.types).options(**checks).parquet(*read.paths)
        if read.files is not None:
            differing = {_local(url) for url in _listed(spark, frame)} ^ set(read.files)
            if differing:
                return f"Spark lists other files: {', '.join(sorted(differing)[:_NAMED])}"
        found = {field.name: field.dataType for field in frame.schema}
        if any(found.get(field.name) != field.dataType for field in read.types):
            return f"Spark reads other columns or types: {frame.schema.simpleString()}"
        if read.condition is not None:
            frame = frame.where(read.condition)
        chosen = frame.select(*("`" + name.replace("`", "``") + "`" for name in result))
        assert chosen.schema is not None  # over Spark Connect, errors come here
    except PySparkException as error:
        return f"Spark says: {str(error).splitlines()[0]}"
    return chosen


def _listed(spark: Any, frame: Any) -> list[str]:
    """The URLs of the files that Spark reads."""
    if not is_connect(spark):
        with suppress(Exception):  # a shortcut: PySpark itself takes them from the JVM one by one
            return str(spark._jvm.org.apache.hadoop.util.StringUtils.join("\n", frame._jdf.inputFiles())).split("\n")
    return list(frame.inputFiles())


def _local(url: str) -> str:
    """The path of a URL as Spark writes it."""
    from urllib.parse import unquote

    return unquote(re.sub("^file:(//)?(?=/)", "", url))


def check_engine(engine: Any) -> None:
    """Raise :class:`OptionError` for what is none of :data:`ENGINES`."""
    if engine not in ENGINES:
        raise OptionError(f'engine must be "auto", "pyparq" or "spark", not {engine!r}')


def check_reader(engine: str, why: str) -> None:
    """Raise :class:`UnsupportedError` where Spark's reader was asked for, and pyparq reads: ``why``."""
    if engine == "spark":
        raise UnsupportedError(f'engine="spark": Spark\'s own reader is not used ({why})')
