"""pyarrow's own tests of ``pyarrow.parquet``, with :mod:`pyparq.parquet` in its place (``support/behind_pyarrow.py``).

Every test passes, or stands below with the reason. Where a test that is listed passes, the list is stale.
"""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pyarrow
import pytest
from conftest import absent, corpus_path

THEIRS = Path(pyarrow.__file__).parent / "tests" / "parquet"

INSIDES = "about the insides of pyarrow"
CHECKED = "checksums of pages are always checked, and pages are laid out otherwise"

REASONS = {
    "test_basic::test_page_checksum_verification_write_table": CHECKED,
    "test_basic::test_checksum_write_to_dataset": CHECKED,
    "test_basic::test_read_table_without_dataset": INSIDES,
    "test_basic::test_read_table_raises_value_error_when_ds_is_unavailable": INSIDES,
    "test_compliant_nested_type::test_write_compliant_nested_type_disable": "lists have the names of the format",
    "test_dataset::test_write_to_dataset_kwargs_passed": INSIDES,
    "test_datetime::test_coerce_int96_timestamp_overflow": "an instant that does not fit is an error",
    "test_encryption::test_encrypted_parquet_write_read_external": "the footer's key has two names in the material",
    "test_metadata::test_parquet_metadata_api": "the name of the writer is pyparq's",
    "test_metadata::test_parquet_column_statistics_api": "the number of distinct values is known",
    "test_metadata::test_geospatial_types": INSIDES,
    "test_metadata::test_parquet_file_sorting_columns": "an order that the rows do not have is refused",
    "test_parquet_file::test_read_statistics": INSIDES,
    "test_parquet_writer::test_parquet_writer_context_obj_with_exception": "a failed write leaves no file",
    "test_parquet_writer::test_parquet_content_defined_chunking": "pages are not cut by contents",
}


@pytest.mark.slow
def test_every_test_passes_or_has_a_reason(tmp_path: Path) -> None:
    if not (THEIRS / "test_basic.py").exists():
        absent("needs pyarrow's tests, which its wheels have")
    corpus = corpus_path()
    support = Path(__file__).parents[1] / "support"
    environment = {**os.environ, "PYTHONPATH": str(support)}
    if corpus is not None:
        environment["PARQUET_TEST_DATA"] = str(corpus / "data")
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "behind_pyarrow", "-p", "no:cacheprovider", "-c", os.devnull,
        "--rootdir", str(THEIRS), f"--junitxml={tmp_path / 'report.xml'}", f"--basetemp={tmp_path / 'work'}",
        str(THEIRS),
    ]  # fmt: skip
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, cwd=tmp_path)
    assert (tmp_path / "report.xml").exists(), ran.stdout[-2000:] + ran.stderr[-2000:]
    failed, passed = set[str](), set[str]()
    for case in ElementTree.parse(tmp_path / "report.xml").iter("testcase"):
        name = f"{case.get('classname', '').rsplit('.', 1)[-1]}::{case.get('name', '').split('[')[0]}"
        if case.find("failure") is not None:
            failed.add(name)
        elif case.find("skipped") is None and case.find("error") is None:
            passed.add(name)
    assert failed - REASONS.keys() == set(), ran.stdout[-3000:]
    assert len(passed - failed) > 150
    if corpus is not None:
        assert REASONS.keys() - failed == set()


@pytest.mark.parametrize("name", sorted(REASONS))
def test_reasons_name_tests(name: str) -> None:
    module, test = name.split("::")
    assert f"def {test}(" in (THEIRS / f"{module}.py").read_text()
