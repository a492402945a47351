"""``pyparq verify``: its tables, its JSON, its exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_files import as_json, ok, run, write_sample
from encryption_tools import FOOTER, table, written
from forged import Forged, sound

import pyparq
from pyparq.encryption import EncryptionProperties


@pytest.fixture
def forged(tmp_path: Path) -> Path:
    file = Forged(sound())
    file.of("t", 1).statistics.null_count = 4
    path = tmp_path / "forged.parquet"
    path.write_bytes(file.data())
    return path


def test_a_sound_file(tmp_path: Path) -> None:
    lines = ok("verify", write_sample(tmp_path / "sample.parquet")).splitlines()
    assert lines[0].endswith("sample.parquet: 3 row groups, 4,000 rows: no findings")
    assert lines[1].split()[:3] == ["column", "chunks", "pages"]
    assert lines[3].split()[:4] == ["id", "3", "21", "4,000"]
    assert len(lines) == 3 + 13


def test_findings_and_their_exit_code(forged: Path) -> None:
    result = run("verify", forged)
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert lines[0].endswith("1 finding")
    assert lines[-1].split()[:5] == ["1", "t", "-", "-", "count"]
    assert lines[-1].endswith("Statistics: null_count is 4, but the chunk holds 0 nulls")


def test_json(forged: Path, tmp_path: Path) -> None:
    (tmp_path / "sound.parquet").write_bytes(sound())
    result = run("verify", tmp_path, "--json")
    assert result.exit_code == 1
    document = as_json("verify", tmp_path / "sound.parquet", "--json")
    assert document["ok"] is True
    assert document["files"][0]["columns"][0]["column"] == ["n"]


def test_some_columns(forged: Path) -> None:
    assert "no findings" in ok("verify", forged, "-c", "n,p")
    assert run("verify", forged, "-c", "t").exit_code == 1
    assert run("verify", forged, "-c", "nothing").exit_code == 2


def test_what_is_not_there(tmp_path: Path) -> None:
    result = run("verify", tmp_path / "nothing.parquet")
    assert result.exit_code == 1
    assert "No such file" in result.stderr
    result = run("verify", tmp_path)
    assert result.exit_code == 1
    assert "no data files" in result.stderr


def test_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "encrypted.parquet"
    path.write_bytes(written(table(), EncryptionProperties(FOOTER)))
    assert run("verify", path).exit_code == 1
    monkeypatch.setenv("PYPARQ_KEYS", f'{{"footer_key": "text:{FOOTER.decode()}"}}')
    assert "no findings" in ok("verify", path)


def test_the_exit_code_stays_where_the_reader_leaves(tmp_path: Path) -> None:
    """``pyparq verify bad | head -1`` has the exit code of ``pyparq verify bad``, and no traceback."""
    path = tmp_path / "a.parquet"
    pyparq.write_table({"a": list(range(5000))}, path, compression="none", use_dictionary=False)
    damaged = bytearray(path.read_bytes())
    damaged[200] ^= 255
    for data, code in ((path.read_bytes(), 0), (bytes(damaged), 1)):
        path.write_bytes(data)
        run = subprocess.Popen(
            [sys.executable, "-m", "pyparq", "verify", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        assert run.stderr.read() == b""
        assert run.wait() == code
        run.stderr.close()


def test_an_exit_code_does_not_stay_for_the_next_command(tmp_path: Path) -> None:
    """Two commands in one process, whose reader has left: the second one has its own exit code."""
    good, bad = tmp_path / "good.parquet", tmp_path / "bad.parquet"
    pyparq.write_table({"a": list(range(5000))}, good, compression="none", use_dictionary=False)
    damaged = bytearray(good.read_bytes())
    damaged[200] ^= 255
    bad.write_bytes(damaged)
    assert [run("verify", path).exit_code for path in (bad, good, bad)] == [1, 0, 1]
    code = """if True:
        import sys
        from pyparq.cli.app import run
        print(*(run(["verify", path]) for path in sys.argv[1:]), file=sys.stderr)
    """
    with subprocess.Popen(
        [sys.executable, "-c", code, bad, good], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as both:
        assert both.stdout is not None
        assert both.stderr is not None
        both.stdout.close()
        assert both.stderr.read() == "1 0\n"
