"""``pyparq.verify``: each kind of false statement is found and named, and files beside a bad one are checked."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from forged import COLUMNS, FORGERIES, GROUPS, Forged, Forgery, sound

import pyparq
from pyparq.maintenance.verify.report import KINDS

FOREIGN = Path(__file__).parents[2] / "testdata" / "foreign"


def place_of(finding: pyparq.Finding) -> tuple[Any, ...]:
    return (finding.column[0] if finding.column else None, finding.row_group, finding.page, finding.row)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_sound_file_has_no_findings(version: str) -> None:
    report = pyparq.verify(sound(version))
    assert report.ok, str(report)
    assert report.not_checked == []
    by_name = {column.path[0]: column for column in report.columns}
    assert list(by_name) == COLUMNS
    for column in by_name.values():
        assert (column.chunks, column.statistics, column.offset_indexes) == (GROUPS, GROUPS, GROUPS)
        assert column.checksums == column.pages + (GROUPS if column.path == ("s",) else 0)
    assert by_name["n"].bloom_filters == GROUPS
    rate = by_name["n"].bloom_rate
    assert rate is not None
    assert 0 < rate < 0.02
    assert by_name["p"].bloom_rate is None
    assert by_name["p"].num_nulls == 120


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda f: f.name)
def test_each_falsification_is_found_and_named(forgery: Forgery) -> None:
    report = pyparq.verify(forgery.file())
    found = [f for f in report.findings if (f.kind, f.structure) == (forgery.kind, forgery.structure)]
    assert found, str(report)
    assert not report.ok
    if forgery.where is not None:
        assert forgery.where in [place_of(f) for f in found], [str(f) for f in report.findings]
        assert {f.column for f in report.findings if f.kind == forgery.kind and f.column} <= {
            f.column for f in found if f.column
        }
    for finding in found:
        assert finding.text in str(report)


def test_every_kind_is_falsified() -> None:
    """Those that are left have tests of their own."""
    elsewhere = {"catalog", "file", "signature"}
    assert {forgery.kind for forgery in FORGERIES} | elsewhere == set(KINDS)


def test_other_columns_are_checked_beside_a_corrupt_page() -> None:
    forged = Forged(sound())
    forged.body[forged.pages("n")[2][1] + 4] ^= 1
    forged.of("t", 1).statistics.null_count = 4
    report = pyparq.verify(forged.data())
    assert [(f.kind, f.column, f.row_group, f.page) for f in report.findings] == [
        ("checksum", ("n",), 0, 2), ("count", ("t",), 1, None),
    ]  # fmt: skip
    assert {c.path[0]: c.findings for c in report.columns} == {c: int(c in "nt") for c in COLUMNS}


def test_a_report_as_text_and_as_json() -> None:
    forged = Forged(sound())
    forged.column_index("n", lambda index: index.max_values.__setitem__(4, (700).to_bytes(8, "little")))
    report = pyparq.verify(forged.data())
    lines = str(report).splitlines()
    assert lines[0].endswith("2 row groups, 600 rows: 1 finding")
    assert "0  n          4  234  bounds  ColumnIndex: " in lines[-1]
    document = json.loads(json.dumps(report.to_dict()))
    assert (document["ok"], document["findings"]) == (False, 1)
    (file,) = document["files"]
    assert file["findings"][0] | {"text": "", "file": ""} == {
        "kind": "bounds", "structure": "ColumnIndex", "text": "", "file": "", "row_group": 0, "column": ["n"],
        "page": 4, "row": 234, "pages": 1,
    }  # fmt: skip
    assert [column["column"][0] for column in file["columns"]] == COLUMNS


def test_only_some_columns() -> None:
    forged = Forged(sound())
    forged.of("t").statistics.null_count = 4
    assert pyparq.verify(forged.data(), ["n", "p"]).ok
    assert [c.path for c in pyparq.verify(forged.data(), "t").columns] == [("t",)]
    assert not pyparq.verify(forged.data(), "t").ok
    with pytest.raises(pyparq.ColumnNotFoundError, match="did you mean"):
        pyparq.verify(sound(), "tt")


def test_progress_ends_at_all_bytes() -> None:
    seen: list[tuple[int, int]] = []
    pyparq.verify(sound(), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(sound()), len(sound()))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len(seen) > GROUPS * len(COLUMNS)


# ---- what is no Parquet file, and files among others


@pytest.mark.parametrize("data", [b"", b"PAR1", b"no Parquet at all, but long enough"], ids=["empty", "short", "text"])
def test_what_is_no_parquet_file_is_a_finding(data: bytes) -> None:
    report = pyparq.verify(io.BytesIO(data))
    assert [f.kind for f in report.findings] == ["file"]


def test_a_source_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        pyparq.verify(tmp_path / "nothing.parquet")
    with pytest.raises(pyparq.OptionError):
        pyparq.verify(object())


def test_a_folder_with_a_corrupt_file_in_the_middle(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        (tmp_path / f"{name}.parquet").write_bytes(sound())
    whole = sound()
    (tmp_path / "b.parquet").write_bytes(whole[: len(whole) // 2])
    forged = Forged(whole)
    forged.of("t").statistics.null_count = 4
    (tmp_path / "c.parquet").write_bytes(forged.data())
    seen: list[tuple[int, int]] = []
    for source in (tmp_path, str(tmp_path / "*.parquet"), pyparq.dataset(tmp_path)):
        report = pyparq.verify(source, progress=lambda done, total: seen.append((done, total)))
        assert [file.ok for file in report.files] == [True, False, False, True]
        assert [(f.kind, Path(f.file).name) for f in report.findings] == [
            ("file", "b.parquet"), ("count", "c.parquet"),
        ]  # fmt: skip
        assert "4 files, 6 row groups" in str(report)
        assert "2 findings in 2 of them" in str(report)
        assert {column.chunks for column in report.columns} == {3 * GROUPS}
        assert seen[-1][0] == seen[-1][1]
    assert pyparq.verify([tmp_path / "a.parquet", tmp_path / "d.parquet"]).ok


def test_an_unreadable_file_among_others_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(sound())
    (tmp_path / "b.parquet").write_bytes(sound())
    dataset = pyparq.dataset(tmp_path)
    (tmp_path / "b.parquet").unlink()
    report = pyparq.verify(dataset)
    assert [(f.kind, "FileNotFoundError" in f.text) for f in report.findings] == [("file", True)]
    assert report.files[0].ok
