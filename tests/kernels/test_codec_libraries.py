"""How the kernels come by zlib, zstd, Brotli and libcrypto at run time, and what happens where they do not."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import sys
import textwrap
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
import zstandard

from pyparq import kernels

NAMES = ["zlib", "zstd", "brotli", "libcrypto"]
CODECS = ["none", "snappy", "gzip", "brotli", "zstd", "lz4_raw"]
KEY = b"k" * 16
TABLE = pa.table({"n": range(5_000), "s": [None if n % 5 == 0 else f"text {n % 97}" for n in range(5_000)]})

searched = pytest.mark.skipif(
    any(row[1] == "linked" for row in kernels.library_report()), reason="this build is linked: it searches nothing"
)

START = """
import os, signal, sys, warnings
from pyparq import kernels
from pyparq.kernels import libraries
from pyparq.kernels._native import probes
look = libraries.files_of
YES = bytes.fromhex("28b52ffd2003190000796573")  # "yes" as a frame of zstd
def native():  # does the kernel read zstd?
    out = bytearray(3)
    return probes.inflate(6, YES, out) == 3 and out == b"yes"
"""


def run(code: str, *arguments: str, **environment: str) -> str:
    """What a fresh interpreter prints. The libraries of this one were found before."""
    command = [sys.executable, "-c", START + textwrap.dedent(code), *arguments]
    clean = {name: value for name, value in os.environ.items() if name != "PYPARQ_NO_LIBRARIES"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=clean | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_what_is_found_here() -> None:
    report = {name: rest for name, *rest in kernels.library_report()}
    assert list(report) == NAMES
    if {state for state, *_ in report.values()} != {"found"}:
        pytest.skip("the build is linked to its libraries, or some are missing or switched off")
    assert report["zlib"][1].removesuffix(" and libdeflate") == zlib.ZLIB_RUNTIME_VERSION
    assert report["zstd"][1] == ".".join(map(str, zstandard.ZSTD_VERSION))
    assert f"OpenSSL {report['libcrypto'][1]} " in ssl.OPENSSL_VERSION
    for _, _, file, reason in report.values():
        assert Path(file).exists()
        assert reason == ""


# ---- looking for a library is interrupted


@searched
@pytest.mark.parametrize("kind", ["KeyboardInterrupt", "TimeoutError", "Stop"])
def test_an_interrupted_look_is_made_again(kind: str) -> None:
    """The exception arrives all the same: it belongs to the program."""
    code = f"""
    class Stop(Exception): pass
    def interrupted(name):
        libraries.files_of = look
        raise {kind}("from a handler")
    libraries.files_of = interrupted
    caught = None
    try:
        first = native()
        for _ in range(1000): pass
    except {kind} as error:
        caught = error
    print(type(caught).__name__, native(), kernels.library_report()[1][1])
    """
    assert run(code).split() == [kind, "True", "found"]


@searched
def test_ctrl_c_during_the_look() -> None:
    code = """
    def interrupted(name):
        libraries.files_of = look
        os.kill(os.getpid(), signal.SIGINT)
        return look(name)
    libraries.files_of = interrupted
    try:
        native()
        for _ in range(1000): pass
        print("not", end=" ")
    except KeyboardInterrupt:
        pass
    print("interrupted", native())
    """
    assert run(code).split() == ["interrupted", "True"]


@searched
def test_lack_of_memory_during_the_look() -> None:
    code = """
    def interrupted(name):
        libraries.files_of = look
        raise MemoryError
    libraries.files_of = interrupted
    print(native(), native())
    """
    assert run(code).split() == ["False", "True"]


@searched
def test_a_look_that_always_fails_is_given_up() -> None:
    code = """
    looks = []
    def broken(name):
        looks.append(name)
        raise MemoryError("no room")
    libraries.files_of = broken
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert not any(native() for _ in range(100))
    assert len(said) == 1 and "no room" in str(said[0].message), said
    print(len(looks), kernels.library_report()[1][1])
    """
    assert run(code).split() == ["8", "missing"]


# ---- libraries that are not believed

FAKE_ZLIB = """
#include <stdlib.h>
const char* zlibVersion(void) { return VERSION; }
unsigned long crc32(unsigned long before, const unsigned char* data, unsigned n) { if (!MAY_CALL) abort(); return 7; }
#define STUB(name) int name(void) { abort(); }
STUB(inflateInit2_) STUB(inflateReset2) STUB(inflate) STUB(inflateEnd)
STUB(deflateInit2_) STUB(deflateReset) STUB(deflate) STUB(deflateEnd)
"""


@searched
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize(
    ("version", "calls", "said"),
    [
        ("2.0.1", 0, "it is version 2.0.1, but pyparq knows 1.2.4 and later ones below 2.0.0"),
        ("1.1.4", 0, "it is version 1.1.4, but"),
        ("nonsense", 0, "it is version 0.0.0, but"),
        ("1.3.1", 1, "it failed its self-test"),
    ],
)
def test_versions_and_self_tests(version: str, calls: int, said: str, tmp_path: Path) -> None:
    """Of a version that is not known no other function is even called. The next candidate is tried."""
    source, fake = tmp_path / "fake.c", tmp_path / "libfake.so"
    source.write_text(FAKE_ZLIB)
    flags = [f'-DVERSION="{version}"', f"-DMAY_CALL={calls}", "-shared", "-fPIC", "-w", "-Wl,-Bsymbolic"]
    subprocess.run(["cc", *flags, str(source), "-o", str(fake)], check=True)
    code = """
    libraries.files_of = lambda name: [sys.argv[1], *(look(name) if sys.argv[2:] else [])]
    warnings.simplefilter("ignore")
    print(*kernels.library_report()[0], sep="|")
    """
    name, state, _, file, reason = run(code, str(fake)).strip().split("|")
    assert (name, state, file) == ("zlib", "missing", "")
    assert reason.startswith(f"{fake}: {said}")
    assert run(code, str(fake), "and others").split("|")[1] == "found"


FAKE_LIBDEFLATE = """
#include <string.h>
typedef size_t many;
void* libdeflate_alloc_decompressor(void) { return ""; }
void libdeflate_free_decompressor(void* one) {}
int libdeflate_gzip_decompress_ex(void* one, void* in, many n, void* out, many room, many* a, many* b) { return 0; }
void* libdeflate_alloc_compressor(int level) { return ""; }
void libdeflate_free_compressor(void* one) {}
many libdeflate_gzip_compress(void* one, void* in, many n, void* out, many room) { memset(out, 7, 40); return 40; }
"""
GZIPPED = """
asked = libraries.files_of_libdeflate
libraries.files_of_libdeflate = lambda: {files}
import pyparq, pyarrow.parquet as pq
text = "pages of text, some of which are too large for libdeflate " * 14
table = {{"t": [f"{{k % 700}} {{text}}é" for k in range(6000)], "n": [k * k % 977 for k in range(6000)]}}
for level, size in ((0, 1 << 20), (1, 1 << 20), (6, 1 << 20), (6, 64 << 20), (9, 1 << 16)):
    pyparq.write_table(
        table, sys.argv[1], compression="gzip", compression_level=level, data_page_size=size, use_dictionary=False,
        column_encoding={{"t": "PLAIN"}},
    )
    assert pq.read_table(sys.argv[1]).to_pydict() == table
    assert pyparq.read_table(sys.argv[1]).to_pydict() == table
print(kernels.library_report()[0][2])
"""


@pytest.mark.slow
@searched
def test_gzip_by_libdeflate_and_without_it(tmp_path: Path) -> None:
    """Where it is installed it does whole pages. pyarrow reads them, and each reads what the other wrote."""
    path = str(tmp_path / "t.parquet")
    assert run(GZIPPED.format(files=[]), path).strip() == zlib.ZLIB_RUNTIME_VERSION
    plain = Path(path).read_bytes()
    there = run(GZIPPED.format(files="asked()"), path).strip()
    if there == zlib.ZLIB_RUNTIME_VERSION:
        pytest.skip("no libdeflate on this machine")
    assert there == f"{zlib.ZLIB_RUNTIME_VERSION} and libdeflate"
    assert pq.read_table(pa.BufferReader(plain)) == pq.read_table(path)
    code = "import pyparq; print(pyparq.read_table(sys.argv[1]) is not None, pyparq.read_table(sys.argv[2]).num_rows)"
    (tmp_path / "plain.parquet").write_bytes(plain)
    assert run(code, path, str(tmp_path / "plain.parquet")).split() == ["True", "6000"]


@searched
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("without", ["", "libdeflate_gzip_compress", "libdeflate_alloc_decompressor"])
def test_a_libdeflate_that_is_wrong_is_not_used(tmp_path: Path, without: str) -> None:
    source, fake = tmp_path / "fake.c", tmp_path / "libfake.so"
    source.write_text(FAKE_LIBDEFLATE.replace(without, "another") if without else FAKE_LIBDEFLATE)
    subprocess.run(["cc", "-shared", "-fPIC", "-w", str(source), "-o", str(fake)], check=True)
    code = "libraries.files_of_libdeflate = lambda: [sys.argv[1]]; print(kernels.library_report()[0][2])"
    assert run(code, str(fake)).strip() == zlib.ZLIB_RUNTIME_VERSION


@searched
def test_a_library_without_the_functions() -> None:
    code = """
    libraries.files_of = lambda name: ["/nowhere/libz.so", *look("zlib" if name == "zstd" else "zstd")]
    warnings.simplefilter("ignore")
    for name, state, version, file, reason in kernels.library_report()[:2]:
        print(state, reason.rpartition(": ")[2])
    """
    assert run(code).splitlines() == ["missing it has no zlibVersion", "missing it has no ZSTD_versionNumber"]


# ---- missing libraries


@searched
def test_a_missing_library_warns_once() -> None:
    """Whoever uses it, on how many threads, and how often."""
    code = """
    import io, threading, pyparq
    libraries.files_of = lambda name: []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(3):
            sink = io.BytesIO()
            pyparq.write_table({"n": list(range(20_000)), "m": ["x"] * 20_000}, sink, compression="zstd")
            threads = [threading.Thread(target=pyparq.read_table, args=[sink.getvalue()]) for _ in range(4)]
            [t.start() for t in threads], [t.join() for t in threads]
            assert pyparq.read_table(sink.getvalue()).to_pydict()["n"] == list(range(20_000))
    for warning in said:
        print(warning.category.__name__, warning.message)
    """
    lines = run(code).splitlines()
    assert sorted(line.split(" that it can use")[0] for line in lines) == [
        "RuntimeWarning pyparq did not find a zlib",
        "RuntimeWarning pyparq did not find a zstd",
    ]
    zstd = next(line for line in lines if "a zstd" in line)
    for part in ("slower", "Install zstandard", "PYPARQ_SYSTEM_LIBS=ON", "PYPARQ_NO_LIBRARIES=zstd", "show_versions"):
        assert part in zstd


@searched
def test_warnings_may_be_errors() -> None:
    code = """
    libraries.files_of = lambda name: []
    warnings.simplefilter("error")
    try:
        native()
        for _ in range(1000): pass
        print("silent")
    except RuntimeWarning as warning:
        print("raised")
    print(native())
    """
    assert run(code).split() == ["raised", "False"]


# ---- the switch

WRITE = f"""
    import pyparq
    from pyparq.encryption import EncryptionProperties
    folder = sys.argv[1]
    data = {{"n": list(range(5_000)), "s": [None if n % 5 == 0 else f"text {{n % 97}}" for n in range(5_000)]}}
    for codec in {CODECS}:
        pyparq.write_table(data, f"{{folder}}/{{codec}}.parquet", compression=codec)
    for algorithm in ("AES_GCM_V1", "AES_GCM_CTR_V1"):
        encryption = EncryptionProperties({KEY!r}, algorithm=algorithm)
        pyparq.write_table(data, f"{{folder}}/{{algorithm}}.encrypted", encryption=encryption)
    print("cryptography" in sys.modules, *(row[1] for row in kernels.library_report()), sep="|", end="|")
"""
READ = f"""
    import pyparq
    from pyparq.encryption import DecryptionProperties
    folder = sys.argv[1]
    data = {{"n": list(range(5_000)), "s": [None if n % 5 == 0 else f"text {{n % 97}}" for n in range(5_000)]}}
    for name in sorted(os.listdir(folder)):
        decryption = DecryptionProperties({KEY!r}) if name.endswith("encrypted") else None
        assert pyparq.read_table(f"{{folder}}/{{name}}", decryption=decryption).to_pydict() == data, name
        print(name)
"""


@pytest.mark.sweep(6)
@pytest.mark.parametrize(
    ("switch", "off"),
    [("1", NAMES), ("all", NAMES), ("zstd, libcrypto", ["zstd", "libcrypto"]), ("0", []), ("", [])],
)
def test_switched_off(switch: str, off: list[str], tmp_path: Path) -> None:
    """Files are as good either way, nobody is warned, and AES runs on one OpenSSL: that of cryptography is imported
    only where the kernels have none."""
    state, *states, rest = run(WRITE, str(tmp_path), PYPARQ_NO_LIBRARIES=switch).split("|")
    assert rest == ""
    assert state == str("libcrypto" in off)
    assert [name for name, state in zip(NAMES, states, strict=True) if state == "switched off"] == off
    for path in tmp_path.iterdir():
        given = {} if path.suffix == ".parquet" else {"decryption_properties": pe.create_decryption_properties(KEY)}
        assert pq.read_table(path, **given).equals(TABLE), path.name
    for name in CODECS:
        known = {"lz4_raw": "lz4"}.get(name, name)
        pq.write_table(TABLE, tmp_path / f"their {name}.parquet", compression=known)
    assert len(run(READ, str(tmp_path), PYPARQ_NO_LIBRARIES=switch).splitlines()) == 2 * len(CODECS) + 2


def test_a_name_that_no_library_has() -> None:
    said = run("kernels.library_report()", PYPARQ_NO_LIBRARIES="zlip")
    assert "PYPARQ_NO_LIBRARIES names 'zlip', but the libraries are zlib, zstd, brotli, libcrypto" in said
