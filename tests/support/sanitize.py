"""Builds the kernels under sanitizers and runs their tests on them.

    python tests/support/sanitize.py [--portable] [--whole] [--build-dir DIR] [pytest arguments]
    python tests/support/sanitize.py --own-maps [--build-dir DIR] [pytest arguments]
    python tests/support/sanitize.py --threads [--build-dir DIR] [pytest arguments]

The first finds wrong accesses (AddressSanitizer, UndefinedBehaviorSanitizer). The second does so for code that keeps
memory of its own and moves its pages (base/memory.cpp): a sanitizer otherwise replaces it by malloc, to see where each
block ends. The third finds threads that disturb each other (ThreadSanitizer): it runs the tests with many threads, and
thread_stress.py.

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
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def tool(name: str) -> str | None:
    """A program beside this interpreter, or on the PATH."""
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)


@dataclass(frozen=True)
class Flavour:
    """What to look for, and where."""

    sanitizers: str
    libraries: tuple[str, ...]
    portable: bool = False
    whole: bool = False
    settings: dict[str, str] = field(default_factory=dict)


TESTS_OF_THREADS = ("kernels/test_kernels_workers.py", "runtime/test_threads.py", "runtime/test_forks.py",
                    "read/test_decoder.py", "write/test_write_streaming.py")  # fmt: skip


TESTS_OF_MEMORY = ("kernels/test_buffers.py", "kernels/test_kernels_many.py", "read/test_decoder.py",
                   "read/test_read_shapes.py")  # fmt: skip


def memory(portable: bool, whole: bool, own_maps: bool) -> Flavour:
    # Python itself leaks at exit; allocator_may_return_null lets MemoryError be MemoryError.
    settings = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:abort_on_error=0",
                "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}  # fmt: skip
    if own_maps:
        settings["PYPARQ_OWN_MAPS"] = "1"
    return Flavour("address,undefined", ("libasan.so", "libubsan.so"), portable, whole, settings)


def threads(reports: Path) -> Flavour:
    """Its reports become files whose names begin with ``reports``. Only what this build made is watched."""
    said = f"log_path={reports}:ignore_noninstrumented_modules=1:report_signal_unsafe=0:die_after_fork=0"
    return Flavour("thread", ("libtsan.so",), whole=True, settings={"TSAN_OPTIONS": said})


def build(directory: Path, flavour: Flavour) -> Path:
    """The instrumented extension's path."""
    directory.mkdir(parents=True, exist_ok=True)
    cmake = tool("cmake")
    if cmake is None or importlib.util.find_spec("nanobind") is None:
        raise SystemExit("needs cmake and nanobind: pip install '.[dev]'")
    configure = [
        cmake, "-S", str(ROOT / "pyparq" / "kernels"), "-B", str(directory), f"-DPYPARQ_SANITIZE={flavour.sanitizers}",
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DPython_EXECUTABLE={sys.executable}",
        f"-DPYPARQ_NO_SIMD={'ON' if flavour.portable else 'OFF'}",
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
    (directory / "sitecustomize.py").write_text(WITHOUT_EDITABLE)


WITHOUT_EDITABLE = """import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "Redirecting" not in type(finder).__name__]
"""
"""In processes that a test starts, the finder of an editable install would come before the overlay."""


def library(name: str) -> str:
    compiler = os.environ.get("CXX", "g++")
    found = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    path = found.stdout.strip()
    if not Path(path).is_absolute():
        raise SystemExit(f"{compiler} has no {name}; install the sanitizer runtime")
    return path


def run(directory: Path, flavour: Flavour, command: list[str]) -> int:
    """Run Python with these arguments on the build."""
    overlaid = directory / "overlay"
    overlay(overlaid, build(directory / "build", flavour), flavour.whole)
    env = dict(
        os.environ,
        LD_PRELOAD=" ".join(map(library, flavour.libraries)),
        PYTHONMALLOC="malloc",
        PYTHONSAFEPATH="1",  # processes that a test starts find the overlay, too, and not the source folder
        PYTHONPATH=os.pathsep.join([str(overlaid), sysconfig.get_path("purelib"), *site.getsitepackages()]),
        **flavour.settings,
    )
    # -S: an editable install would put its own finder before the overlay; -P: so would the working directory.
    python = [sys.executable, "-S", "-P"]
    if flavour.sanitizers == "thread" and shutil.which("setarch"):
        python = ["setarch", "-R", *python]  # it cannot do with all places where Linux puts libraries
    return subprocess.run([*python, *command], env=env, cwd=ROOT, check=False).returncode


def pytest(tests: list[str]) -> list[str]:
    # --capture=sys leaves the sanitizer its own stderr.
    return ["-m", "pytest", "-q", "--capture=sys", "-p", "no:cacheprovider", "-p", "no:randomly", *tests]


def run_threads(directory: Path, arguments: list[str]) -> int:
    """The tests with many threads, and the script. Any report is a failure."""
    reports = directory / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir(parents=True)
    flavour = threads(reports / "race")
    failed = run(directory, flavour, pytest(arguments or [str(ROOT / "tests" / name) for name in TESTS_OF_THREADS]))
    if not arguments:
        failed |= run(directory, flavour, [str(Path(__file__).with_name("thread_stress.py"))])
    for report in sorted(reports.iterdir()):
        print(report.read_text())
        failed = 1
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build-dir", type=Path, help="keep the build here and use it again")
    parser.add_argument("--portable", action="store_true", help="without the code for x86-64 only")
    parser.add_argument("--whole", action="store_true", help="the whole package, for tests beyond those of the kernels")
    parser.add_argument("--own-maps", action="store_true", help="with the memory that the kernels keep for themselves")
    parser.add_argument("--threads", action="store_true", help="look for threads that disturb each other")
    options, rest = parser.parse_known_args()
    with ExitStack() as stack:
        directory = options.build_dir
        if directory is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pyparq-sanitize-")))
        if options.threads:
            return run_threads(directory.resolve(), rest)
        own = [ROOT / "tests" / name for name in TESTS_OF_MEMORY] if options.own_maps else []
        tests = rest or [str(path) for path in own or sorted((ROOT / "tests").rglob("test_kernels*.py"))]
        flavour = memory(options.portable, options.whole or options.own_maps, options.own_maps)
        return run(directory.resolve(), flavour, pytest(tests))


if __name__ == "__main__":
    sys.exit(main())
