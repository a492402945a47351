"""Sound files of other writers give no findings; unsound ones of the public corpus give those that are known."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from encryption_tools import FOOTER, OTHER, corpus_keys, table, written
from hypothesis import given, settings
from hypothesis import strategies as st
from interop_peers import OPTIONS, WRITERS, with_encodings
from interop_tables import encodings, nested_tables, spread, tables
from test_encryption_corpus import BLOOM, FILES, properties
from test_interop_read import NAMES
from test_interop_write import FEW

import pyparq
from pyparq.encryption import DecryptionProperties, EncryptionProperties

FOREIGN = Path(__file__).parents[2] / "testdata" / "foreign"

UNSOUND = {
    "datapage_v1-corrupt-checksum": {"checksum"},
    "rle-dict-uncompressed-corrupt-checksum": {"checksum"},
    # A prototype of the writer left the ColumnIndex empty: all pages null, null counts of -1.
    "datapage_v1-snappy-compressed-checksum": {"count", "bounds"},
    "datapage_v1-uncompressed-checksum": {"count", "bounds"},
    "nation.dict-malformed": {"size", "layout"},
    "repeated_no_annotation": {"count"},  # 0 rows in the footer, 6 in the row group
}
"""Files of the corpus that say something false, and the kinds of findings they give."""

BAD = {
    "ARROW-GH-41317": {"metadata"}, "ARROW-GH-41321": {"page", "size"}, "ARROW-GH-43605": set(),
    "ARROW-GH-45185": {"page"}, "ARROW-GH-47662": {"page"}, "ARROW-RS-GH-6229-DICTHEADER": {"page"},
    "ARROW-RS-GH-6229-LEVELS": {"count", "page"}, "PARQUET-1481": {"page"},
}  # fmt: skip


@pytest.mark.parametrize("path", sorted(FOREIGN.glob("*.parquet")), ids=lambda p: p.stem)
def test_kept_files_of_all_writers(path: Path) -> None:
    report = pyparq.verify(path)
    assert report.ok, str(report)
    assert sum(column.pages for column in report.columns) > 0


@pytest.mark.slow
def test_the_corpus(corpus: Path) -> None:
    folders = corpus / "data", corpus / "shredded_variant"
    found = {path.stem: pyparq.verify(path) for folder in folders for path in sorted(folder.glob("**/*.parquet"))
             if path.stem != "large_string_map.brotli"}  # fmt: skip
    assert len(found) > 150
    kinds = {stem: {f.kind for f in report.findings} for stem, report in found.items() if not report.ok}
    assert kinds == UNSOUND


def test_the_bad_files_of_the_corpus(corpus: Path) -> None:
    found = {path.stem: pyparq.verify(path) for path in (corpus / "bad_data").glob("*.parquet")}
    for stem, report in found.items():
        assert BAD[stem] <= {f.kind for f in report.findings}, (stem, str(report))
        assert report.ok == (not BAD[stem]), stem
    assert found.keys() == BAD.keys()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("theirs") / "theirs.parquet"


def is_known(finding: pyparq.Finding, created_by: str | None) -> bool:
    """arrow-rs marks a page of lists as null when its nulls are as many as its rows: such an index loses rows.

    DataFusion writes by arrow-rs, and puts its own name into the footer.
    """
    nested = finding.column is not None and len(finding.column) > 1
    by_arrow_rs = (created_by or "").startswith(("parquet-rs", "datafusion"))
    return by_arrow_rs and nested and finding.structure == "ColumnIndex"


def check(path: Path) -> None:
    report = pyparq.verify(path)
    left = [str(f) for f in report.findings if not is_known(f, report.files[0].created_by)]
    assert left == []


def write(writer: str, data: Any, path: Path, options: dict[str, Any]) -> None:
    path.unlink(missing_ok=True)
    WRITERS[writer](data, path, options)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("writer", WRITERS)
@settings(max_examples=25, **FEW)
@given(data=st.data())
def test_flat_columns_of_each_writer(path: Path, writer: str, data: st.DataObject) -> None:
    rows = data.draw(tables(NAMES[writer]))
    options = data.draw(OPTIONS[writer])
    if data.draw(st.booleans()):
        rows = spread(rows, 300)
    if data.draw(st.booleans()):
        options = with_encodings(writer, options, data.draw(encodings(rows)))
    write(writer, rows, path, options)
    check(path)


@pytest.mark.parametrize("writer", WRITERS)
@settings(max_examples=15, **FEW)
@given(data=st.data())
def test_nested_columns_of_each_writer(path: Path, writer: str, data: st.DataObject) -> None:
    write(writer, data.draw(nested_tables()), path, data.draw(OPTIONS[writer]))
    check(path)


OURS = {
    "data_page_version": st.sampled_from(["1.0", "2.0"]), "compression": st.sampled_from(["none", "snappy", "zstd"]),
    "use_dictionary": st.booleans(), "row_group_size": st.sampled_from([7, 1000]),
    "max_rows_per_page": st.sampled_from([3, 1000]), "bloom_filters": st.booleans(),
    "float_order": st.sampled_from(["TYPE_ORDER", "IEEE_754_TOTAL_ORDER"]), "write_page_checksum": st.booleans(),
}  # fmt: skip


@settings(max_examples=40, **FEW)
@given(data=st.data())
def test_our_own_files(path: Path, data: st.DataObject) -> None:
    rows = data.draw(st.one_of(tables(sorted(NAMES["pyarrow"])), nested_tables()))
    pyparq.write_table(rows, path, **data.draw(st.fixed_dictionaries(OURS)))
    report = pyparq.verify(path)
    assert report.ok, str(report)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("nan", [np.nan, -np.nan])
@pytest.mark.parametrize("places", [[6], [0, 1, 2], [3, 4, 5, 6], list(range(7)), [13], list(range(7, 14))])
def test_pages_of_nan_beside_pages_of_numbers(path: Path, kind: type, nan: float, places: list[int]) -> None:
    """In the total order a page of NaN alone has NaN as its bounds, and the chunk's pass over it."""
    values = np.linspace(-3, 3, 14).astype(kind)
    values[places] = nan
    order = "IEEE_754_TOTAL_ORDER"
    rows = pa.table({"f": values})
    pyparq.write_table(rows, path, row_group_size=7, max_rows_per_page=3, use_dictionary=False, float_order=order)
    report = pyparq.verify(path)
    assert report.ok, str(report)


# ---- encrypted files


@pytest.mark.parametrize("name", [*FILES, BLOOM])
def test_encrypted_files_of_the_corpus(corpus: Path, name: str) -> None:
    path = corpus / "data" / name
    report = pyparq.verify(path, decryption=properties(path))
    assert report.ok, str(report)
    assert report.not_checked == []


def test_a_column_without_its_key_is_reported_as_not_checked(corpus: Path) -> None:
    path = corpus / "data" / "encrypt_columns_and_footer.parquet.encrypted"
    footer, columns, prefix = corpus_keys(path)
    (left_out, *_), rest = list(columns), dict(list(columns.items())[1:])
    keys = DecryptionProperties(footer, rest, aad_prefix=prefix)
    report = pyparq.verify(path, decryption=keys)
    assert report.ok, str(report)
    (reason,) = report.not_checked
    assert reason.startswith(f"column {left_out}: the column is encrypted with its own key, which is not known")
    assert reason in str(report)
    assert [c.pages for c in report.columns if c.not_checked] == [0]


@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
def test_our_encrypted_files(algorithm: Any, plaintext_footer: bool) -> None:
    keys = EncryptionProperties(FOOTER, {"id": OTHER}, algorithm=algorithm, plaintext_footer=plaintext_footer)
    data = written(table(), keys)
    given = DecryptionProperties(FOOTER, {"id": OTHER})
    report = pyparq.verify(data, decryption=given)
    assert report.ok, str(report)
    assert report.not_checked == []
    assert next(c for c in report.columns if c.path == ("id",)).bloom_filters == 3
    # One byte of the first page of an encrypted column.
    spoiled = bytearray(data)
    with pyparq.ParquetFile(data, decryption=given) as file:
        chunk = file._file.chunk(1, file.tree.find("id"))
        locations = file.page_locations(1, "id")
    assert locations is not None
    spoiled[chunk.start + int(locations.sizes[0]) - 20] ^= 1
    findings = pyparq.verify(bytes(spoiled), decryption=given).findings
    assert [(f.row_group, f.column) for f in findings][:1] == [(1, ("id",))]
    assert findings[0].kind in ("page", "checksum", "bounds")


def test_the_signature_of_a_plaintext_footer() -> None:
    keys = EncryptionProperties(FOOTER, {"id": OTHER}, plaintext_footer=True)
    data = written(table(), keys)
    at = data.rindex(b"pyparq version")
    forged = data[:at] + b"P" + data[at + 1 :]
    report = pyparq.verify(forged, decryption=DecryptionProperties(FOOTER, {"id": OTHER}))
    assert [(f.kind, f.structure) for f in report.findings] == [("signature", "FileMetaData")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the report says it, and nothing else
        report = pyparq.verify(data, decryption=DecryptionProperties(column_keys={"id": OTHER}))
    assert report.ok, str(report)
    assert report.not_checked[0] == "the signature of the footer: the footer key is not known"


def test_an_encrypted_footer_without_its_key_is_a_finding() -> None:
    report = pyparq.verify(written(table(), EncryptionProperties(FOOTER)))
    assert [f.kind for f in report.findings] == ["file"]
    assert "footer is encrypted" in report.findings[0].text
