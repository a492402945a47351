"""Builds the kernels under AddressSanitizer and UndefinedBehaviorSanitizer and runs their tests on them.

    python tests/support/sanitize.py [--portable] [--whole] [--build-dir DIR] [pytest arguments]

Needs GCC or clang with libasan. The build goes to a temporary directory (or the given one, to build only
once), never into the tree. The package is laid over it by links, with an empty `pyparq/__init__.py`, so that
what the tests import is what was just built. With `--whole` it is the package as it is, for tests that read and
write files (tests/read/test_decoder.py and its neighbours: give them as arguments). A finding stops the run with the
sanitizer's report.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import site
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def tool(name: str) -> str | None:
    """A program beside this interpreter, or on the PATH."""
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)


def build(directory: Path, portable: bool) -> Path:
    """The instrumented extension's path."""
    directory.mkdir(parents=True, exist_ok=True)
    cmake = tool("cmake")
    if cmake is None or importlib.util.find_spec("nanobind") is None:
        raise SystemExit("needs cmake and nanobind: pip install '.[dev]'")
    configure = [
        cmake, "-S", str(ROOT / "pyparq" / "kernels"), "-B", str(directory), "-DPYPARQ_SANITIZE=ON",
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DPython_EXECUTABLE={sys.executable}",
        f"-DPYPARQ_NO_SIMD={'ON' if portable else 'OFF'}",
    ]  # fmt: skip
    if ninja := tool("ninja"):
        configure += ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([cmake, "--build", str(directory)], check=True, stdout=subprocess.DEVNULL)
    return next(directory.glob("_native.*so"))


def overlay(directory: Path, extension: Path, whole: bool) -> None:
    """A pyparq package of links into the source tree, with the given extension."""
    source, package = ROOT / "pyparq", directory / "pyparq"
    kernels = package / "kernels"
    kernels.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").unlink(missing_ok=True)
    left_out = ["kernels"] if whole else ["kernels", "__init__.py"]
    links = {package / p.name: p for p in source.iterdir() if p.name not in left_out}
    if not whole:
        (package / "__init__.py").write_text('"""Only what a test imports by itself."""\n')
    links |= {kernels / p.name: p for p in (source / "kernels").glob("*.py")}
    links[kernels / extension.name] = extension
    for link, target in links.items():
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def library(name: str) -> str:
    compiler = os.environ.get("CXX", "g++")
    found = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    path = found.stdout.strip()
    if not Path(path).is_absolute():
        raise SystemExit(f"{compiler} has no {name}; install the sanitizer runtime")
    return path


def run(directory: Path, portable: bool, whole: bool, arguments: list[str]) -> int:
    overlaid = directory / "overlay"
    overlay(overlaid, build(directory / "build", portable), whole)
    tests = arguments or [str(p) for p in sorted((ROOT / "tests").rglob("test_kernels*.py"))]
    env = dict(
        os.environ,
        LD_PRELOAD=f"{library('libasan.so')} {library('libubsan.so')}",
        # Python itself leaks at exit; allocator_may_return_null lets MemoryError be MemoryError.
        ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:abort_on_error=0",
        UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1",
        PYTHONMALLOC="malloc",
        PYTHONSAFEPATH="1",  # processes that a test starts find the overlay, too, and not the source folder
        PYTHONPATH=os.pathsep.join([str(overlaid), sysconfig.get_path("purelib"), *site.getsitepackages()]),
    )
    # --capture=sys leaves the sanitizer its own stderr.
    # -S: an editable install would put its own finder before the overlay; -P: so would the working directory.
    command = [
        sys.executable,
        "-S",
        "-P",
        "-m",
        "pytest",
        "-q",
        "--capture=sys",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        *tests,
    ]
    return subprocess.run(command, env=env, cwd=ROOT, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build-dir", type=Path, help="keep the build here and use it again")
    parser.add_argument("--portable", action="store_true", help="without the code for x86-64 only")
    parser.add_argument("--whole", action="store_true", help="the whole package, for tests beyond those of the kernels")
    options, rest = parser.parse_known_args()
    if options.build_dir:
        return run(options.build_dir.resolve(), options.portable, options.whole, rest)
    with tempfile.TemporaryDirectory(prefix="pyparq-sanitize-") as temporary:
        return run(Path(temporary), options.portable, options.whole, rest)


if __name__ == "__main__":
    sys.exit(main())
