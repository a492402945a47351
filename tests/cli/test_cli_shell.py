"""The command line as a process: exit codes, pipes, terminals, what it imports."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_files import as_json, ok, plain, refused, run, shell, terminal, write_sample

import pyparq
from pyparq.cli.missing_extra import missing_extra, requirement
from pyparq.cli.output import Busy, cut, width
from pyparq.runtime.text import visible


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sample(tmp_path_factory.mktemp("cli") / "sample.parquet")


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "wide.parquet"
    columns = {f"column_{k:04d}": np.arange(3) + k for k in range(1500)}
    pq.write_table(pa.table(columns), path, row_group_size=2)
    return path


# ---- errors


def test_errors_are_one_line_and_a_code(file: Path, tmp_path: Path) -> None:
    (tmp_path / "text.parquet").write_text("this is no Parquet file")
    cut_off = tmp_path / "cut.parquet"
    cut_off.write_bytes(file.read_bytes()[:5000])
    assert "No such file" in refused(1, "meta", tmp_path / "nowhere.parquet")
    assert "directory" in refused(1, "pages", tmp_path)
    assert "not a Parquet file" in refused(1, "meta", tmp_path / "text.parquet")
    assert "not a Parquet file" in refused(1, "head", cut_off)
    assert "No such file" in refused(1, "head", "memory://nowhere/x.parquet")
    assert "cannot read from 'nonsense://x'" in refused(2, "head", "nonsense://x")
    assert "did you mean 'note'" in refused(2, "head", file, "-c", "nott")
    assert "row group 9" in refused(2, "meta", file, "-g", 9)
    assert "No such command" in refused(2, "mata", file)
    assert f"a command comes first, such as 'pyparq head {file}'" in refused(2, file)
    assert "No such option '--jsn': did you mean --json?" in refused(2, "meta", file, "--jsn")
    assert "'--where': 'pyparq query' and 'pyparq count' have --where (see" in refused(
        2, "head", file, "--where", "id > 1"
    )
    assert "'--filter': did you mean --where?" in refused(2, "query", file, "--filter", "id > 1")
    assert "'--limit': did you mean -n?" in refused(2, "head", file, "--limit", "1")
    assert "'--fields': did you mean --columns?" in refused(2, "head", file, "--fields", "id")
    for option in ("--head", "--rows", "-n", "--limit"):
        assert f"'{option}': 'pyparq head' and 'pyparq tail' have -n (see" in refused(2, "cat", file, option, "1")
    for option in ("--head", "--rows", "-n"):
        assert f"'{option}': did you mean --limit? (see" in refused(2, "query", file, option, "1")
    assert all(run(command, file, "-n", "1") for command in ("head", "tail"))
    assert all(run(command, file, "--where", "id > 1") for command in ("query", "count"))
    assert "'--sort' (see" in refused(2, "head", file, "--sort", "id")
    assert "Missing argument" in refused(2, "pages")
    assert "an empty name" in refused(2, "head", file, "-c", "id,,note")


def test_exit_codes_of_the_process(file: Path, tmp_path: Path) -> None:
    good, missing = shell("schema", file), shell("head", tmp_path / "nowhere")
    wrong = shell("query", file, "-w", "id ==")
    assert (good.returncode, good.stderr) == (0, "")
    assert (missing.returncode, len(missing.stderr.splitlines()), missing.stdout) == (1, 1, "")
    assert (wrong.returncode, len(wrong.stderr.splitlines()), wrong.stdout) == (2, 1, "")


def test_tracebacks_on_request(file: Path, tmp_path: Path) -> None:
    for result in (
        shell("query", file, "-w", "idd = 1", "--traceback"),
        shell("query", file, "-w", "idd = 1", PYPARQ_TRACEBACK="1"),
    ):
        assert result.returncode != 0
        assert "Traceback (most recent call last)" in result.stderr
        assert "ColumnNotFoundError" in result.stderr


def test_warnings_are_one_line(corpus: Path) -> None:
    result = run("index", corpus / "data" / "datapage_v1-uncompressed-checksum.parquet")
    assert result.exit_code == 0
    lines = result.stderr.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("pyparq: warning: page index ignored") for line in lines)


def test_unexpected_errors_too(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr("pyparq.cli.meta.title", broken)
    assert "unexpected ZeroDivisionError: by zero (run with --traceback" in refused(1, "meta", file)


def test_help_and_version() -> None:
    text = ok("--help")
    assert all(name in text for name in ("schema", "meta", "pages", "index", "bloom", "head", "query", "explain"))
    assert ok("--version").startswith("pyparq ")
    assert "LIKE 'a%b_'" in ok("query", "--help")
    bare = run()
    assert bare.exit_code == 2
    assert "Commands:" in bare.stderr


# ---- what is imported


@pytest.mark.parametrize("missing", ["click", "rich", "sqlglot"])
def test_a_missing_extra_is_said_in_one_line(file: Path, missing: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        f"from pyparq.cli import main; sys.exit(main(['query', {str(file)!r}, '-w', \"note = 'é'\"]))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr == f"pyparq: error: the command line needs {missing}: pip install {requirement()}\n"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (None, "'pyparq[cli]'"),
        ({"url": "file:///home/me/pyparq", "dir_info": {"editable": True}}, "-e '/home/me/pyparq[cli]'"),
        ({"url": "file:///home/me/my%20clone", "dir_info": {}}, "'/home/me/my clone[cli]'"),
        ({"url": "https://host/me/pyparq.git", "vcs_info": {"vcs": "git"}},
         "'pyparq[cli] @ git+https://host/me/pyparq.git'"),
    ],
)  # fmt: skip
def test_the_hint_is_for_the_way_it_was_installed(source: Any, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Installed:
        def read_text(self, name: str) -> str | None:
            return None if source is None else json.dumps(source)

    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Installed())
    assert missing_extra(ImportError("no", name="click")) == f"the command line needs click: pip install {told}"


def test_help_and_pipes_import_neither_rich_nor_sqlglot(file: Path) -> None:
    code = (
        "import sys; from pyparq.cli import main\n"
        f"for name in ('meta', 'schema', 'pages', 'head'): assert main([name, {str(file)!r}, '-c', 'id']) == 0\n"
        "assert main(['--help']) == 0\n"
        "heavy = {'rich', 'sqlglot', 'pyarrow', 'pandas', 'polars'} & set(sys.modules); assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_closed_pipe_is_quiet(file: Path) -> None:
    """And no failure: every command, help, errors and what stands behind a long table."""
    for arguments in (
        f"meta {file}", f"schema {file}", f"pages {file}", f"index {file}", f"bloom {file}", f"head {file} -n 4000",
        f"query {file} --json", f"query {file} --limit 0", f"query {file} --csv", f"explain {file}", "--help",
        f"meta {file} --json", f"meta {file} --traceback", "query --help",
    ):  # fmt: skip
        command = f"set -o pipefail; {sys.executable} -m pyparq {arguments} | head -1"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", 1), arguments


@pytest.mark.slow
def test_a_pipe_that_nobody_reads(file: Path) -> None:
    for arguments in (f"meta {file}", f"query {file} --csv"):
        command = f"set -o pipefail; {sys.executable} -m pyparq {arguments} | true"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), arguments


def test_a_full_disk_is_an_error(file: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    command = f"{sys.executable} -m pyparq meta {file} > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "No space left" in done.stderr


def test_python_m_pyparq(file: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "pyparq", "schema", str(file)], capture_output=True, text=True)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", ok("schema", file))


# ---- terminals


def test_terminal_tables_fit_and_are_coloured(file: Path) -> None:
    text = terminal("head", file, columns=90)
    lines = plain(text).splitlines()
    assert "\x1b[" in text
    assert all(width(line) <= 90 for line in lines)
    assert "NULL" in text
    assert lines[-2].startswith("… ")
    assert "more column" in lines[-2]
    assert lines[-1] == "10 rows shown, 3,990 more (-n N shows more)"
    piped = ok("head", file)
    assert "\x1b" not in piped
    assert "odd name, é" in piped


@pytest.mark.sweep(9)
@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("command", ["meta", "schema", "pages", "index", "bloom", "head", "explain"])
def test_terminal_tables_of_metadata_fit(file: Path, command: str, columns: int) -> None:
    lines = plain(terminal(command, file, columns=columns)).splitlines()
    assert [line for line in lines if width(line) > columns] == []


def test_a_terminal_of_40_columns_has_every_value(tmp_path: Path) -> None:
    """Tables that do not fit have a line for each cell: no name and no figure is cut."""
    path = tmp_path / "few.parquet"
    names = ["flight_number", "departure_delay_in_minutes"]
    pq.write_table(pa.table({name: list(range(1000)) for name in names}), path, compression="zstd")
    shown = plain(terminal("meta", path, columns=40))
    assert [line for line in shown.splitlines() if width(line) > 40] == []
    assert "\u2026" not in shown.split("columns\n")[-1]
    for value in (*names, "ZSTD", "1,000", "999"):
        assert value in shown


def test_the_data_of_a_picture_as_json(file: Path) -> None:
    whole, asked = (as_json("map", file, "--json", *more) for more in ((), ("-w", "id = 2 and small = 3")))
    with pyparq.ParquetFile(file) as parquet:
        assert whole == json.loads(json.dumps(parquet.map().to_dict()))
        condition = (pyparq.col("id") == 2) & (pyparq.col("small") == 3)
        right = json.loads(json.dumps(parquet.map(filters=condition).to_dict()))
    assert asked["query"]["rows"] == right["query"]["rows"]
    assert whole["groups"] == asked["groups"] == [1500, 1500, 1000]


@pytest.mark.slow
def test_types_are_folded_and_never_cut(tmp_path: Path) -> None:
    types = [pa.decimal128(38, 10), pa.timestamp("ns", "America/Argentina/Buenos_Aires"), pa.binary(12), pa.uint16()]
    types += [pa.list_(pa.struct([("a_long_name", pa.decimal128(20, 2))]))]
    names = [f"{'a_long_name_of_column_' * 2}{k}" for k in range(len(types))]
    table = pa.table([pa.array([None], type_) for type_ in types], names)
    path = tmp_path / "types.parquet"
    pq.write_table(table, path, write_page_index=True, use_dictionary=False)
    for command in ("schema", "meta"):
        shown = plain(terminal(command, path, columns=80))
        assert [line for line in shown.splitlines() if width(line) > 80] == []
        assert "…" not in shown.split("ARROW:schema")[0] + shown.split("columns\n")[-1], command
    wide = plain(terminal("schema", path, columns=400))
    assert "timestamp[ns, tz=UTC]" in wide
    assert "FIXED_LEN_BYTE_ARRAY(16)" in wide
    assert all(name in wide for name in names)


def test_explain_fits_where_its_stages_do_not(file: Path) -> None:
    query = ("explain", file, "-w", "id = 3 AND day > DATE '2020-01-05' AND note IN ('note 1', 'note 2', 'note 3')")
    lines = plain(terminal(*query, columns=60)).splitlines()
    assert [line for line in lines if width(line) > 60] == []
    assert any(line.startswith("  index ") for line in lines)


@pytest.mark.slow
def test_wide_files_stay_short_on_a_terminal(wide: Path) -> None:
    assert len(terminal("meta", wide).splitlines()) < 130
    assert len(terminal("schema", wide).splitlines()) < 220
    pages = plain(terminal("pages", wide))
    assert pages.count("row group 0, column") == 20
    assert "2,980 more column chunks" in pages
    head = plain(terminal("head", wide, columns=60)).splitlines()
    assert head[0].split()[:2] == ["column_0000", "column_0001"]
    assert len(head) == 2 + 3 + 2


def test_wide_files_are_whole_in_a_pipe(wide: Path) -> None:
    assert sum("column_" in line for line in ok("schema", wide).splitlines()) == 1500
    assert len(ok("head", wide, "--csv").splitlines()[0].split(",")) == 1500
    assert "column_1499" in ok("meta", wide, "-c", "column_1499")


# ---- pieces


@pytest.mark.sweep(3)
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_folded_cells_keep_every_letter(tmp_path: Path, columns: int) -> None:
    type_ = pa.map_(pa.string(), pa.struct([("a", pa.decimal128(9, 2)), ("日本語です", pa.binary(12))]))
    name = "one_long_name_of_a_column_that_no_terminal_holds_beside_the_others"
    path = tmp_path / "long.parquet"
    pq.write_table(pa.table([pa.array([None], type_)], [name]), path)
    lines = plain(terminal("schema", path, columns=columns)).splitlines()
    assert [line for line in lines if width(line) > columns] == []
    text = "".join(lines).split("repetition")[1]
    assert "…" not in text
    assert all(text.count(letter) >= name.count(letter) for letter in set(name))
    assert set("日本語です") <= set(text)


def test_optional_columns_are_left_out_first(file: Path) -> None:
    text = plain(terminal("meta", file, columns=80))
    assert "(no room for: codec, page index" in text
    assert "(no room" not in plain(terminal("meta", file, columns=300))


def test_cut_and_width_count_cells() -> None:
    assert width("日本") == 4
    assert cut("日本語です", 6) == "日本…"
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abcde…"


def test_visible() -> None:
    assert visible("tab\t esc\x1b nul\0 nbsp\u00a0 rtl\u202e \udc80") == (
        "tab\\t esc\\x1b nul\\x00 nbsp\u00a0 rtl\\u202e \\udc80"
    )
    assert visible("👩‍👩‍👧 é") == "👩‍👩‍👧 é"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_shows_only_on_a_terminal_and_late(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet, shown = io.StringIO(), _Terminal()
    monkeypatch.setattr(sys, "stderr", quiet)
    with Busy("counting", 3) as busy:
        busy.step()
    assert quiet.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    with Busy("counting", 3) as busy:
        assert shown.getvalue() == ""
        busy._start()  # as the timer does after a second
        busy.step()
    assert "counting" in shown.getvalue()
