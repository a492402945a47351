"""``index_dataset`` and the catalog beside a dataset: results never depend on it, whatever happens to the files."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pa_dataset
import pyarrow.parquet as pq
import pytest
from conftest import require

import pyparq
from pyparq import col
from pyparq.datasets.catalog import building as runs
from pyparq.datasets.catalog.index_dataset import index_dataset
from pyparq.errors import CatalogWarning, ChangedFileError, ColumnNotFoundError, OptionError

QUESTIONS: list[Any] = [
    None, col("id") == 7, col("id") == -5, col("name") == "n3", col("id").isin([3, 14, 15, 9, 900]),
    (col("id") == 7) | (col("name") == "n12"), (col("id") == 7) & (col("amount") > 0.5), col("amount") < 0.25,
    ~(col("id") == 7), (col("id") == 7.0) | (col("part") == 2), col("id").is_null(), col("name").starts_with("n1"),
]  # fmt: skip


class Folder:
    """A dataset whose files are written, changed and removed. Their times lie in the past, so that nothing waits."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.random = random.Random(seed)
        self._second = 0

    def write(self, name: str, rows: int | None = None, *, by: str = "pyparq") -> None:
        draw, count = self.random, self.random.randrange(0, 60) if rows is None else rows
        wide = draw.random() < 0.5
        data: dict[str, Any] = {
            "id": pa.array([draw.choice([None, draw.randrange(20), draw.randrange(1000)]) for _ in range(count)],
                           pa.int64() if wide else pa.int32()),
            "name": pa.array([f"n{draw.randrange(40)}" for _ in range(count)], pa.string()),
        }  # fmt: skip
        if draw.random() < 0.8:
            data["amount"] = pa.array([draw.random() for _ in range(count)], pa.float64())
        target = self.path / f"part={draw.randrange(3)}" / name if "/" not in name else self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        size = draw.choice([7, 1000])
        if by == "pyparq":
            pyparq.write_table(pa.table(data), target, row_group_size=size)
        else:
            pq.write_table(pa.table(data), target, row_group_size=size)
        self._second += 1
        os.utime(target, (1_600_000_000 + self._second,) * 2)

    @property
    def files(self) -> list[Path]:
        return sorted(p for p in self.path.rglob("*.parquet") if "_pyparq_catalog" not in p.parts)

    def step(self) -> str:
        """Change something."""
        what = self.random.choice(["add", "add", "remove", "replace", "rewrite", "index", "index", "move"])
        files = self.files
        if what == "add" or not files:
            self.write(f"f{self.random.randrange(100)}.parquet", by=self.random.choice(["pyparq", "pyarrow"]))
        elif what == "remove":
            self.random.choice(files).unlink()
        elif what == "replace":
            self.write(str(self.random.choice(files).relative_to(self.path)))
        elif what == "rewrite":  # the same name and inode
            one, other = self.random.choice(files), self.random.choice(files)
            one.write_bytes(other.read_bytes())
            self._second += 1
            os.utime(one, (1_600_000_000 + self._second,) * 2)
        elif what == "move":
            os.rename(*self.random.choices(files, k=2))
        else:
            index_dataset(self.path, ["id", "name"])
        return what


def plain(table: Any) -> Any:
    return repr(table.to_pydict()), table.schema, table.schema.metadata  # as text: NaN is NaN


def same_as_without(path: Path, question: Any, **options: Any) -> None:
    """The rows of a question do not depend on the catalog."""
    without = pyparq.dataset(path, catalog="off", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        used = pyparq.dataset(path, **options)
        try:
            expected = without.read(filters=question)
        except ColumnNotFoundError:  # no file has it just now
            with pytest.raises(ColumnNotFoundError):
                used.read(filters=question)
            return
        found = used.read(filters=question)
    assert plain(found) == plain(expected), question
    assert used.count(question) == without.count(question) == found.num_rows


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 40))])
def test_results_never_depend_on_it(tmp_path: Path, seed: int) -> None:
    """Between any two steps, whatever they are."""
    folder = Folder(tmp_path, seed)
    for k in range(4):
        folder.write(f"f{k}.parquet", 40)
    index_dataset(tmp_path, ["id", "name"])
    for _ in range(12):
        folder.step()
        if folder.files:
            for question in folder.random.sample(QUESTIONS, 4):
                same_as_without(tmp_path, question)


def test_trusted_it_gives_the_same_rows(tmp_path: Path) -> None:
    folder = Folder(tmp_path, 1)
    for k in range(12):
        folder.write(f"f{k}.parquet")
    index_dataset(tmp_path, ["id", "name"])
    for question in QUESTIONS:
        trusted = pyparq.dataset(tmp_path, catalog="trust", filename=True)
        expected = pyparq.dataset(tmp_path, catalog="off", filename=True)
        assert plain(trusted.read(filters=question)) == plain(expected.read(filters=question))
        assert trusted.count(question) == expected.count(question)
        assert trusted.files == expected.files


def test_trusted_it_does_not_list_the_folder(tmp_path: Path) -> None:
    folder = Folder(tmp_path, 2)
    for k in range(3):
        folder.write(f"part=1/f{k}.parquet", 30)
    index_dataset(tmp_path, "id")
    folder.write("part=1/new.parquet", 30)
    assert len(pyparq.dataset(tmp_path, catalog="trust").files) == 3
    assert len(pyparq.dataset(tmp_path).files) == 4


def test_a_trusted_file_that_has_changed_is_an_error(tmp_path: Path) -> None:
    folder = Folder(tmp_path, 3)
    folder.write("part=1/f0.parquet", 30)
    index_dataset(tmp_path, "name")
    key = pyparq.read_table(folder.files[0], columns=["name"]).to_pydict()["name"][0]
    folder.write("part=1/f0.parquet", 31)
    with pytest.raises(ChangedFileError):
        pyparq.dataset(tmp_path, catalog="trust").lookup("name", key)


def test_trust_needs_a_catalog(tmp_path: Path) -> None:
    Folder(tmp_path, 3).write("part=1/f0.parquet", 30)
    with pytest.raises(OptionError, match="no catalog to trust"):
        pyparq.dataset(tmp_path, catalog="trust")
    with pytest.raises(OptionError, match="catalog must be"):
        pyparq.dataset(tmp_path, catalog="yes")


def test_files_left_out_of_it_are_read_all_the_same(tmp_path: Path) -> None:
    """Damaged ones, and files whose time of change lies in the future (clocks differ)."""
    folder = Folder(tmp_path, 4)
    for k in range(3):
        folder.write(f"part=1/f{k}.parquet", 30)
    os.utime(folder.files[0], (4_000_000_000, 4_000_000_000))
    (tmp_path / "part=1" / "z.parquet").write_bytes(b"PAR1 no such file PAR1")
    os.utime(tmp_path / "part=1" / "z.parquet", (1_600_000_000, 1_600_000_000))
    report = index_dataset(tmp_path, "id")
    assert report.files == 2
    assert [Path(name).name for name, _ in report.left_out] == ["f0.parquet", "z.parquet"]
    for mode in ("check", "trust", "off"):
        with pytest.warns(pyparq.SkippedFileWarning):
            assert pyparq.dataset(tmp_path, on_error="skip", catalog=mode).count(col("part") == 1) == 90


def test_encrypted_files_are_left_out(tmp_path: Path) -> None:
    keys = pyparq.EncryptionProperties(footer_key=bytes(16))
    pyparq.write_table({"id": [1, 2]}, tmp_path / "a.parquet", encryption=keys)
    pyparq.write_table({"id": [3, 4]}, tmp_path / "b.parquet")
    for path in tmp_path.glob("*.parquet"):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    report = index_dataset(tmp_path, "id")
    assert report.files == 1
    assert [Path(name).name for name, _ in report.left_out] == ["a.parquet"]
    known = pyparq.DecryptionProperties(footer_key=bytes(16), allow_plaintext_files=True)
    assert pyparq.dataset(tmp_path, decryption=known).lookup("id", [1, 3]).to_pydict() == {"id": [1, 3]}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    folder = Folder(tmp_path / "lake", 5)
    for k in range(5):
        folder.write(f"part=1/f{k}.parquet", 20)
    index_dataset(folder.path, ["id", "name"])
    return folder.path


def parts(path: Path) -> list[Path]:
    return sorted((path / "_pyparq_catalog").iterdir())


def test_it_rules_files_out_and_explain_says_so(small: Path) -> None:
    rows = pq.read_table(small).to_pylist()
    key = next(row["id"] for row in rows if row["id"] is not None)
    explained = pyparq.dataset(small).explain(filters=col("id") == key)
    with_key = [f for f in small.rglob("part=1/*.parquet") if key in pq.read_table(f)["id"].to_pylist()]
    assert explained.catalog_knows == 5
    assert explained.catalog_rules_out == 5 - len(with_key)
    assert "the catalog" in str(explained)
    assert pyparq.dataset(small).explain(filters=col("id") == 12345).files_opened == 0


def test_an_update_reads_new_files_only(small: Path) -> None:
    folder = Folder(small, 6)
    again = index_dataset(small)
    assert (again.files, again.files_read, again.changed) == (5, 0, False)
    folder.write("part=1/g.parquet", 10)
    (small / "part=1" / "f0.parquet").unlink()
    folder.write("part=1/f1.parquet", 10)
    os.utime(small / "part=1" / "f1.parquet", (1_700_000_000, 1_700_000_000))
    report = index_dataset(small)
    assert (report.files, report.files_read, report.files_removed) == (5, 2, 2)
    assert report.columns == ("id", "name")
    for question in QUESTIONS:
        same_as_without(small, question)


def test_many_updates_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(tmp_path, 7)
    monkeypatch.setattr(runs, "IN_MEMORY", 50)
    for k in range(10):
        folder.write(f"part=1/f{k}.parquet", 40)
        if k % 4 == 3:
            folder.write(f"part=1/f{k - 2}.parquet", 35)
        index_dataset(tmp_path, "id")
    stated = json.loads((tmp_path / "_pyparq_catalog" / "catalog.json").read_text())["catalog"]
    assert len(stated["segments"]) <= 8
    for question in QUESTIONS:
        same_as_without(tmp_path, question)
    names = {part.name for part in parts(tmp_path)}
    assert len(names) <= 2 * (3 + 8), "old parts are removed"


@pytest.mark.parametrize("in_memory", [1 << 22, 300])
def test_keys_are_written_a_piece_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: int) -> None:
    """Sorted in memory, or in runs that are merged."""
    for k in range(20):
        keys = [(k * 100 + j) * 7919 % 1009 for j in range(100)]  # most are in several files
        pyparq.write_table({"id": keys, "x": range(100)}, tmp_path / f"{k:02}.parquet", row_group_size=30)
    whole = index_dataset(tmp_path, "id", rebuild=True)
    monkeypatch.setattr(runs, "PIECE_ROWS", 70)
    monkeypatch.setattr(runs, "IN_MEMORY", in_memory)
    pieces = index_dataset(tmp_path, "id", rebuild=True)
    assert (pieces.entries, pieces.files) == (whole.entries, 20)
    for key in (0, 5, 500, 1008, 1009):
        expected = pyparq.dataset(tmp_path, catalog="off").lookup("id", key).to_pydict()
        assert pyparq.dataset(tmp_path, catalog="trust").lookup("id", key).to_pydict() == expected


BUILD = """
import sys
import pyparq

def memory(name):
    return next(int(line.split()[1]) >> 10 for line in open("/proc/self/status") if line.startswith(name))

pyparq.index_dataset  # it is loaded
before = memory("VmRSS")
open("/proc/self/clear_refs", "w").write("5")
pyparq.index_dataset(sys.argv[1], "id")
print(memory("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="needs Linux")
@pytest.mark.parametrize(("millions", "most"), [(4, 170), (10, 260)])
def test_the_memory_of_many_keys(tmp_path: Path, millions: int, most: int) -> None:
    draw = np.random.default_rng(1)
    for k in range(10 * millions):
        pyparq.write_table({"id": draw.integers(0, 1 << 62, 100_000)}, tmp_path / f"{k:03}.parquet")
    done = subprocess.run([sys.executable, "-c", BUILD, str(tmp_path)], capture_output=True, check=True, text=True)
    assert int(done.stdout) <= most


def test_the_catalog_is_no_data(small: Path) -> None:
    assert pa_dataset.dataset(small, format="parquet", partitioning="hive").count_rows() == 100
    assert all("_pyparq_catalog" not in name for name in pyparq.dataset(small).files)
    for tool in ("polars", "duckdb"):
        require(tool)
    import duckdb
    import polars

    assert duckdb.sql(f"select count(*) from '{small}/**/*.parquet'").fetchall() == [(100,)]
    found = polars.scan_parquet(f"{small}/**/*.parquet", include_file_paths="path", missing_columns="insert")
    assert "_pyparq_catalog" not in str(found.explain())
    for part in parts(small):
        if part.suffix == ".catalog":
            pq.ParquetFile(part).read()  # anyone reads it


def test_a_crash_leaves_the_old_one(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (small / "_pyparq_catalog" / "catalog.json").read_bytes()
    Folder(small, 8).write("part=1/new.parquet", 10)

    def crash(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pyparq.datasets.catalog.layout.Place.put", crash)
    with pytest.raises(KeyboardInterrupt):
        index_dataset(small)
    assert (small / "_pyparq_catalog" / "catalog.json").read_bytes() == before
    same_as_without(small, col("id") == 7)
    monkeypatch.undo()
    assert index_dataset(small).files_read == 1
    left = [part for part in parts(small) if part.stat().st_mtime]
    for part in left:
        os.utime(part, (1_600_000_000, 1_600_000_000))
    Folder(small, 9).write("part=1/newer.parquet", 10)
    index_dataset(small)
    named = json.loads((small / "_pyparq_catalog" / "catalog.json").read_text())["catalog"]
    known = {named["files"]["name"], named["bounds"]["name"], *(s["part"]["name"] for s in named["segments"])}
    assert {part.name for part in parts(small)} <= {"catalog.json", *known, *named["previous"]}


def read_or_refused(path: Path, expected: Any, question: Any) -> None:
    """The catalog is either used or passed over with a warning; the rows are the same."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found = pyparq.dataset(path).read(filters=question).to_pydict()
    assert found == expected
    assert {warning.category for warning in heard} <= {CatalogWarning}


def test_each_byte_flipped(small: Path) -> None:
    """Of all parts. A damaged catalog is refused or harmless."""
    question = (col("id") < 10) & (col("name") == "n3") | (col("id") == 7)
    expected = pyparq.dataset(small, catalog="off").read(filters=question).to_pydict()
    draw = random.Random(0)
    for part in parts(small):
        data = part.read_bytes()
        for at in draw.sample(range(len(data)), min(len(data), 25)):
            damaged = bytearray(data)
            damaged[at] ^= 1 << draw.randrange(8)
            part.write_bytes(damaged)
            read_or_refused(small, expected, question)
        part.write_bytes(data)


@pytest.mark.parametrize("what", ["cut", "empty", "gone", "version", "other folder", "no json", "swapped"])
def test_a_catalog_that_is_wrong(small: Path, tmp_path: Path, what: str) -> None:
    head = small / "_pyparq_catalog" / "catalog.json"
    if what in ("cut", "empty"):
        for part in parts(small):
            part.write_bytes(part.read_bytes()[: part.stat().st_size // 2 if what == "cut" else 0])
    elif what == "gone":
        next(part for part in parts(small) if part.name.startswith("keys")).unlink()
    elif what == "version":
        stated = json.loads(head.read_text())
        stated["catalog"]["version"] = 99
        head.write_text(json.dumps(stated))
    elif what == "no json":
        head.write_text("[]")
    elif what == "swapped":
        one, other = [part for part in parts(small) if part.name.startswith("keys")]
        data = one.read_bytes(), other.read_bytes()
        one.write_bytes(data[1])
        other.write_bytes(data[0])
    else:  # of a copy of the folder, whose files then become others
        shutil.rmtree(small / "_pyparq_catalog")
        other_folder = Folder(tmp_path / "other", 77)
        for k in range(5):
            other_folder.write(f"part=1/f{k}.parquet", 20)
        index_dataset(other_folder.path, ["id", "name"])
        shutil.copytree(other_folder.path / "_pyparq_catalog", small / "_pyparq_catalog")
    for question in QUESTIONS:
        expected = pyparq.dataset(small, catalog="off").read(filters=question).to_pydict()
        read_or_refused(small, expected, question)


def test_another_version_is_named(small: Path) -> None:
    from pyparq.datasets.catalog import layout

    head = small / "_pyparq_catalog" / "catalog.json"
    stated = json.loads(head.read_text())["catalog"] | {"version": 99}
    head.write_text(json.dumps({"checksum": layout._checksum(stated), "catalog": stated}))
    with pytest.warns(CatalogWarning, match="another version of pyparq"):
        pyparq.dataset(small).lookup("id", 7)
    assert index_dataset(small, ["id"]).files_read == 5


def test_columns_that_cannot_be_keys(tmp_path: Path) -> None:
    pyparq.write_table({"id": [1], "flag": [True], "place": [{"a": 1, "b": 2}]}, tmp_path / "a.parquet")
    with pytest.raises(ColumnNotFoundError):
        index_dataset(tmp_path, "nothing")
    with pytest.raises(OptionError, match="cannot be a key"):
        index_dataset(tmp_path, "flag")
    with pytest.raises(OptionError, match="2 leaf columns"):
        index_dataset(tmp_path, "place")
    with pytest.raises(OptionError, match="no catalog to update"):
        index_dataset(tmp_path)
    with pytest.raises(OptionError, match="made of a folder"):
        index_dataset(tmp_path / "a.parquet", "id")
    assert not (tmp_path / "_pyparq_catalog").exists()


def test_keys_of_many_types(tmp_path: Path) -> None:
    """Against pyarrow, for present and absent keys of each."""
    import datetime as dt
    import decimal

    columns = {
        "i8": pa.array([1, 2, None], pa.int8()), "u64": pa.array([1, 2**63, None], pa.uint64()),
        "f": pa.array([0.0, -0.0, float("nan")], pa.float32()), "d": pa.array([0.5, 2.5, None]),
        "day": pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2), None]),
        "at": pa.array([dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2), None], pa.timestamp("us")),
        "price": pa.array([decimal.Decimal("1.10"), decimal.Decimal("2.20"), None], pa.decimal128(9, 2)),
        "raw": pa.array([b"a", b"", None]), "text": pa.array(["ä", "", None]),
        "tags": pa.array([["a", "b"], [], None]),
    }  # fmt: skip
    table = pa.table(columns)
    for k in range(4):
        pq.write_table(table.slice(k % 3, 1), tmp_path / f"{k}.parquet")
        os.utime(tmp_path / f"{k}.parquet", (1_600_000_000, 1_600_000_000))
    names = [name for name in columns if name != "tags"]
    index_dataset(tmp_path, [*names, ("tags", "list", "element")])
    for name in names:
        for value in columns[name].to_pylist():
            if value is not None:
                same_as_without(tmp_path, col(name) == value)
    same_as_without(tmp_path, col("tags").contains("a"))
    assert pyparq.dataset(tmp_path).explain(filters=col("tags").contains("zzz")).files_opened == 0
    assert pyparq.dataset(tmp_path).explain(filters=col("i8") == 2).files_opened == 1
    assert pyparq.dataset(tmp_path).explain(filters=col("u64") == 2**63).files_opened == 1


def test_verify_checks_it(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pyparq.verify(small).ok
    original = runs.Runs.add
    monkeypatch.setattr(runs.Runs, "add", lambda self, number, group, hashes: original(self, number, group, hashes[1:]))
    index_dataset(small, ["id", "name"], rebuild=True)
    findings = pyparq.verify(small).findings
    assert {finding.kind for finding in findings} == {"catalog"}
    assert len(findings) == sum(2 * pq.ParquetFile(path).num_row_groups for path in small.rglob("part=1/*.parquet"))
    head = small / "_pyparq_catalog" / "catalog.json"
    head.write_bytes(head.read_bytes()[:100])
    assert "cannot be read" in pyparq.verify(small).findings[0].text
