"""Damaged and malicious files: right data or a typed error, never a crash, a hang, or memory without end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile_files import FILTERS, nested_table, other_files, own_files, pyarrow_files, regions, sample_table
from hostile_pages import (
    REQUIRED_INT,
    bombs,
    data_page,
    hand_made,
)
from hostile_structs import Workpiece

import pyparq
from pyparq.errors import ChecksumError, CorruptFileError, LimitError, OptionError, ParquetError
from pyparq.limits import Limits

WORKER = Path(__file__).parents[1] / "support" / "hostile_worker.py"
MEMORY = 512 << 20


def run_job(folder: Path, **job: Any) -> dict[str, Any]:
    """What the worker reports; fails with the case that killed it, if one did."""
    progress = folder / "progress"
    job_file = folder / "job.json"
    job_file.write_text(json.dumps({"progress": str(progress), "subjects": [], **job}))
    done = subprocess.run([sys.executable, str(WORKER), str(job_file)], capture_output=True, text=True, timeout=1500)
    if done.returncode:
        case = progress.read_text().strip() if progress.exists() else "none"
        pytest.fail(f"the worker died in case {case} of {job_file}: {done.stderr[-3000:]}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def must_hold(report: dict[str, Any], cases: int) -> None:
    """All cases ran, none failed, and the process stayed within its memory."""
    shown = "\n".join(f"case {f['seed']}: {f['error']}\n{f['trace']}" for f in report["failures"][:3])
    assert report["failed"] == 0, shown
    assert sum(report["outcomes"].values()) == cases
    assert report["peak"] <= MEMORY


# ---- flipped bytes


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("hostile")
    files = [(p, FILTERS) for p in pyarrow_files(folder) + own_files(folder)] + other_files(folder)
    return [{"path": str(p), "regions": regions(p.read_bytes()), "filters": filters} for p, filters in files]


@pytest.mark.fuzz
def test_flipped_bytes(subjects: list[dict[str, Any]], tmp_path: Path) -> None:
    """Thousands of bytes in files of all codecs and both page versions, by kind of place."""
    must_hold(run_job(tmp_path, subjects=subjects, first=0, count=1000), 1000)


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_flipped_bytes_at_length(subjects: list[dict[str, Any]], tmp_path: Path) -> None:
    for first in range(100_000, 130_000, 10_000):
        must_hold(run_job(tmp_path, subjects=subjects, first=first, count=10_000), 10_000)


def test_the_harness_notices(subjects: list[dict[str, Any]], tmp_path: Path) -> None:
    """Without checksums, damaged bodies do give other data: the comparison above is able to fail."""
    plain = dict(next(s for s in subjects if "pyarrow_none_1" in s["path"]))
    plain["regions"] = {"body": plain["regions"]["body"]}
    report = run_job(tmp_path, subjects=[plain], first=0, count=60, options={"verify_checksums": False})
    assert report["failed"] > 10
    assert all("other data" in f["error"] for f in report["failures"])


# ---- every field of every struct


STRUCT_COLUMNS = ["sorted", "word", "fixed", "float"]


def struct_subject(folder: Path, **options: Any) -> dict[str, Any]:
    path = folder / "structs.parquet"
    options = {"write_page_checksum": True, **options}
    pq.write_table(
        sample_table(120).select(STRUCT_COLUMNS), path, write_page_index=True,
        data_page_size=300, write_batch_size=30, bloom_filter_options={"sorted": {"ndv": 100, "fpp": 0.05}}, **options,
    )  # fmt: skip
    filters = [f for f in FILTERS if all(c[0] in STRUCT_COLUMNS for c in f)]
    return {"path": str(path), "regions": {}, "filters": filters}


@pytest.mark.fuzz
def test_changed_structs(tmp_path: Path) -> None:
    """Footer, page headers, indexes and Bloom headers with one field set to what it should not be; every seventh."""
    subject = struct_subject(tmp_path)
    total = sum(1 for _ in Workpiece(Path(subject["path"]).read_bytes()).mutations())
    assert total > 2000
    must_hold(run_job(tmp_path, subjects=[subject], structs=True, first=0, count=total // 7, step=7), total // 7)


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{}, {"compression": "none", "data_page_version": "2.0"}, {"compression": "zstd", "use_dictionary": False}],
    ids=str,
)
def test_all_changed_structs(tmp_path: Path, options: dict[str, Any]) -> None:
    subject = struct_subject(tmp_path, **options)
    total = sum(1 for _ in Workpiece(Path(subject["path"]).read_bytes()).mutations())
    must_hold(run_job(tmp_path, subjects=[subject], structs=True, first=0, count=total), total)


WORK: list[dict[str, Any]] = [
    {}, {"compression": "none", "data_page_version": "2.0"}, {"compression": "zstd", "use_dictionary": False},
    {"compression": "none", "write_page_checksum": False}, {"write_page_checksum": False, "use_dictionary": False},
]  # fmt: skip


def work_subjects(folder: Path) -> list[dict[str, Any]]:
    subjects = []
    for k, options in enumerate(WORK):
        part = folder / str(k)
        part.mkdir()
        subjects.append(struct_subject(part, row_group_size=60, **options))
        path = part / "nested.parquet"
        options = {"write_page_checksum": True, **options}
        pq.write_table(
            nested_table(60), path, row_group_size=30, data_page_size=200, write_batch_size=10, write_page_index=True,
            **options,
        )  # fmt: skip
        subjects.append({"path": str(path), "regions": {}, "filters": []})
    path = folder / "own.parquet"
    own = sample_table(120).select([*STRUCT_COLUMNS, "price", "flag", "raw"])
    pyparq.write_table(own, path, row_group_size=50, max_rows_per_page=20, bloom_filters=True, sort_by=["sorted"])
    subjects.append({"path": str(path), "regions": {}, "filters": []})
    return subjects


@pytest.mark.fuzz
def test_work_over_changed_structs(tmp_path: Path) -> None:
    """verify, add_indexes, merge, edit_metadata, rewrite and batches of damaged files."""
    must_hold(run_job(tmp_path, subjects=work_subjects(tmp_path), work=True, first=0, count=150), 150)


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_work_over_changed_structs_at_length(tmp_path: Path) -> None:
    must_hold(run_job(tmp_path, subjects=work_subjects(tmp_path), work=True, first=1_000_000, count=5000), 5000)


def test_pages_that_are_said_to_hold_nothing(tmp_path: Path) -> None:
    """The first that is inflated: there is no memory for pages yet."""
    file = Path(struct_subject(tmp_path)["path"]).read_bytes()
    found = [
        data
        for what, data in Workpiece(file).mutations()
        if what.startswith("page header") and what.endswith("uncompressed_page_size = 0")
    ]
    assert len(found) >= len(STRUCT_COLUMNS)
    for data in found:
        with pytest.raises(CorruptFileError):
            pyparq.read_table(data, use_threads=False)


# ---- bombs: consistent claims that cost nothing to make


@pytest.mark.slow
def test_bombs(tmp_path: Path) -> None:
    """Each is small, consistent, and would take gigabytes: refused within the memory there is."""
    paths, names = [], []
    for name, data in bombs():
        assert len(data) < 2 << 20
        path = tmp_path / f"{len(paths)}.parquet"
        path.write_bytes(data)
        paths.append(str(path))
        names.append(name)
    report = run_job(tmp_path, bombs=paths, first=0, count=len(paths))
    for failure in report["failures"]:
        failure["error"] += f" ({names[failure['seed']]})"
    must_hold(report, len(paths))
    assert set(report["outcomes"]) <= {"error LimitError", "error CorruptFileError"}


def test_limits_are_the_users() -> None:
    """The caps refuse, name themselves, and can be raised."""
    text = pa.table({"s": ["x" * 1000] * 5000})
    data = to_bytes(text)
    with pytest.raises(LimitError, match="max_column"):
        pyparq.read_table(data, limits=Limits(max_column=1 << 20))
    with pytest.raises(LimitError, match="max_footer"):
        pyparq.read_table(data, limits=Limits(max_footer=10))
    nulls = pa.table({"n": pa.nulls(100_000, pa.int64())})
    with pytest.raises(LimitError, match="max_values_per_byte"):
        pyparq.read_table(to_bytes(nulls), limits=Limits(max_values_per_byte=100))
    assert pyparq.read_table(data).to_arrow().equals(text)
    assert pyparq.read_table(to_bytes(nulls)).num_rows == 100_000


# ---- files that are not whole


def to_bytes(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return bytes(sink.getvalue().to_pybytes())


@pytest.fixture(scope="module")
def small() -> bytes:
    table = sample_table(60).select(["sorted", "word"])
    return to_bytes(
        table, write_page_index=True, write_page_checksum=True, bloom_filter_options={"sorted": {"ndv": 60}}
    )


def test_truncated_at_every_length(small: bytes) -> None:
    for length in range(len(small)):
        with pytest.raises(CorruptFileError):
            pyparq.read_table(small[:length])


def test_truncated_at_the_front(small: bytes) -> None:
    """Offsets point elsewhere then: an error, or at least no crash."""
    for missing in range(1, len(small), 7):
        with pytest.raises(ParquetError):
            pyparq.read_table(small[missing:])


@pytest.mark.parametrize("magic", [b"PAR2", b"\0\0\0\0", b"PARE", b"par1"])
def test_wrong_magic(small: bytes, magic: bytes) -> None:
    # PARE announces an encrypted footer, which this is not.
    with pytest.raises(ParquetError, match="<bytes>" if magic == b"PARE" else "not a Parquet file"):
        pyparq.read_table(small[:-4] + magic)


@pytest.mark.parametrize("length", [0, 1, 2**31 - 1, 2**31, 2**32 - 1, "size", "one too few", "one too many"])
def test_footer_lengths(small: bytes, length: int | str) -> None:
    true = int.from_bytes(small[-8:-4], "little")
    named = {"size": len(small), "one too few": true - 1, "one too many": true + 1}
    claimed = named[length] if isinstance(length, str) else length
    with pytest.raises(CorruptFileError, match="footer"):
        pyparq.read_table(small[:-8] + claimed.to_bytes(4, "little") + b"PAR1")


@pytest.mark.parametrize("content", [b"", b"P", b"PAR1", b"PAR1PAR1", b"PAR1\0\0\0\0PAR1", b"id,name\n1,a\n" * 100])
def test_no_parquet_at_all(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "no.parquet"
    path.write_bytes(content)
    with pytest.raises(CorruptFileError, match=r"no\.parquet"):
        pyparq.read_table(path)
    with pytest.raises(CorruptFileError):
        pyparq.ParquetFile(content)


def test_file_cut_while_open(small: bytes, tmp_path: Path) -> None:
    """Another process shortens a file that is being read."""
    path = tmp_path / "cut.parquet"
    path.write_bytes(small)
    with pyparq.ParquetFile(path, tail_size=8) as file:
        path.write_bytes(small[:10])
        with pytest.raises(CorruptFileError, match="the file ends within"):
            file.read()


# ---- what is not a file that can be read


def test_missing_and_unreadable(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        pyparq.read_table(tmp_path / "nowhere.parquet")
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        pyparq.ParquetFile(tmp_path)
    with pytest.raises(OptionError, match="cannot read from int"):
        pyparq.read_table(42)


def test_pipes_are_refused_not_waited_for(tmp_path: Path) -> None:
    import os

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OptionError, match="seekable"):
        pyparq.read_table(pipe)
    source, sink = os.pipe()
    with os.fdopen(source, "rb") as read_end, pytest.raises(OptionError, match="seek"):
        pyparq.read_table(read_end)
    os.close(sink)


def test_text_mode(small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(small)
    with open(path, encoding="latin-1") as text, pytest.raises(OptionError, match="text mode"):
        pyparq.read_table(text)
    file = open(path, "rb")  # noqa: SIM115
    file.close()
    with pytest.raises(OptionError, match="closed"):
        pyparq.read_table(file)


# ---- what an error says


def test_errors_name_the_place(tmp_path: Path) -> None:
    data = bytearray(to_bytes(sample_table(480).select(["sorted", "id"]), row_group_size=240, write_page_checksum=True))
    body = regions(bytes(data))["body"][-1]
    data[body[0] + 3] ^= 0x10
    path = tmp_path / "damaged.parquet"
    path.write_bytes(data)
    with pytest.raises(ChecksumError) as caught:
        pyparq.read_table(path)
    error = caught.value
    assert (error.file, error.row_group, error.column) == (str(path), 1, "id")
    assert error.page is not None
    for part in ("damaged.parquet", "row group 1", "column id", "page"):
        assert part in str(error)


def test_damage_elsewhere_does_not_matter(tmp_path: Path) -> None:
    """A damaged column does no harm to those that read other columns, or other row groups."""
    table = sample_table(480).select(["sorted", "id"])
    data = bytearray(to_bytes(table, row_group_size=240, write_page_checksum=True))
    body = regions(bytes(data))["body"][-1]
    data[body[0] + 3] ^= 0x10
    assert pyparq.read_table(bytes(data), columns=["sorted"]).to_arrow().equals(table.select(["sorted"]))
    assert pyparq.read_table(bytes(data), row_groups=[0]).to_arrow().equals(table.slice(0, 240))


def test_changed_codec_and_encoding_are_named() -> None:
    """An unknown codec or encoding: its number, its column, and what to do."""
    data = to_bytes(pa.table({"n": [1, 2, 3]}), use_dictionary=False, compression="snappy")
    piece = Workpiece(data)
    chunk = piece.meta.row_groups[0].columns[0].meta_data
    for codec, said in ((8, "codec 8.*newer pyparq"), (11, "codec 11.*newer pyparq"), (-1, "codec -1")):
        chunk.codec = codec
        with pytest.raises(pyparq.errors.UnsupportedError, match=f"{said}.*column n, page 0"):
            pyparq.read_table(piece.with_footer(piece.meta))
        for version in ("1.0", "2.0"):
            nothing = Workpiece(to_bytes(pa.table({"n": pa.nulls(3, pa.int64())}), data_page_version=version))
            nothing.meta.row_groups[0].columns[0].meta_data.codec = codec
            if version == "2.0":  # the page has levels only, and these are not compressed
                assert pyparq.read_table(nothing.with_footer(nothing.meta)).to_pydict() == {"n": [None] * 3}
            else:
                with pytest.raises(pyparq.errors.UnsupportedError, match=f"{said}.*column n, page 0"):
                    pyparq.read_table(nothing.with_footer(nothing.meta))
    raw = bytes(8 * 3)
    for encoding, said in ((4, "BIT_PACKED"), (1, "encoding 1"), (11, "encoding 11"), (77, "encoding 77")):
        data = hand_made(REQUIRED_INT, 3, [(data_page(3, encoding, len(raw)), raw)])
        with pytest.raises(pyparq.errors.UnsupportedError, match=f"{said} .*newer pyparq.*column n, page 0"):
            pyparq.read_table(data)


def test_bad_data(corpus: Path) -> None:
    """Files that crashed other readers: typed errors, or what others read now."""
    readable = {"ARROW-GH-43605.parquet"}
    seen = set()
    for path in sorted((corpus / "bad_data").glob("*.parquet")):
        seen.add(path.name)
        if path.name in readable:
            assert pyparq.read_table(path).to_arrow().equals(pq.read_table(path))
            continue
        with pytest.raises(ParquetError, match=path.name):
            pyparq.read_table(path)
    assert readable < seen
