"""The kernels compile for macOS and Windows: zig has the headers of these systems. Nothing is linked or run."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "pyparq" / "kernels" / "src"
CONFIG = """
#define SIZEOF_VOID_P 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_LONG {long}
#define SIZEOF_INT 4
#define SIZEOF_SHORT 2
#define SIZEOF_LONG_LONG 8
#define SIZEOF_WCHAR_T {wide}
#define SIZEOF_TIME_T 8
#define SIZEOF_PID_T 4
#define SIZEOF_FLOAT 4
#define SIZEOF_DOUBLE 8
#define ALIGNOF_LONG {long}
#define ALIGNOF_MAX_ALIGN_T 16
#define HAVE_STDINT_H 1
#define WITH_THREAD 1
{more}
"""
"""Of pyconfig.h, the one header of Python's that differs from system to system, what the others ask for."""
MACOS = CONFIG.format(
    long=8,
    wide=4,
    more="#define _DARWIN_C_SOURCE 1\n#define HAVE_SYS_STAT_H 1\n#define HAVE_UNISTD_H 1\n#define HAVE_PTHREAD_H 1",
)
WINDOWS = CONFIG.format(
    long=4,
    wide=2,
    more="#define MS_WIN64 1\n#define MS_WINDOWS 1\n#define NT_THREADS 1\n#define HAVE_DECLSPEC_DLL 1",
)
SYSTEMS = {"x86_64-macos": MACOS, "aarch64-macos": MACOS, "x86_64-windows-gnu": WINDOWS}
ALONE = ("codecs", "variant")
"""Folders whose files are compiled one by one: some names stand in several of them."""


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not importlib.util.find_spec("ziglang"), reason="needs a cross compiler: pip install ziglang")
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_kernels_compile(system: str, tmp_path: Path) -> None:
    nanobind = pytest.importorskip("nanobind")
    headers = tmp_path / "python"
    shutil.copytree(sysconfig.get_path("include"), headers)
    (headers / "pyconfig.h").write_text(SYSTEMS[system])
    compiler = [sys.executable, "-m", "ziglang", "c++", "-target", system, "-std=c++20", "-O0", "-c", "-DNDEBUG"]
    compiler += [f"-I{SOURCES}", f"-isystem{headers}", f"-isystem{nanobind.include_dir()}"]

    def fails(unit: list[Path]) -> str:
        whole = tmp_path / f"{'-'.join(unit[0].relative_to(SOURCES).parts)}"
        whole.write_text("".join(f'#include "{file}"\n' for file in unit))
        made = whole.with_suffix(".o")
        done = subprocess.run([*compiler, str(whole), "-o", str(made)], capture_output=True, text=True)
        return "" if done.returncode == 0 and made.stat().st_size > 0 else done.stderr or "no object file"

    with ThreadPoolExecutor(2) as pool:
        failed = [said for said in pool.map(fails, units()) if said]
    assert not failed, "\n".join(failed)


def units() -> list[list[Path]]:
    """What is compiled at once: a folder, as far as that goes. Most of the time goes into headers that all share."""
    alone = [SOURCES / "decode" / "page.cpp", SOURCES / "base" / "take_gil.cpp", *SOURCES.glob("*.cpp")]
    for folder in ALONE:
        alone += (SOURCES / folder).glob("*.cpp")
    folders = [path for path in sorted(SOURCES.iterdir()) if path.is_dir() and path.name not in ALONE]
    together = [sorted(set(folder.glob("*.cpp")) - set(alone)) for folder in folders]
    return [*together, *([file] for file in alone)]
