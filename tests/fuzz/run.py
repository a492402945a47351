"""Fuzzes the kernels with libFuzzer, under AddressSanitizer and UndefinedBehaviorSanitizer.

    python tests/fuzz/run.py TARGET --seconds 60     one target (targets.py names them)
    python tests/fuzz/run.py --all --seconds 3600    all of them, which share the time
    python tests/fuzz/run.py --all --thorough        fewer executions, each of which is looked at more closely
    python tests/fuzz/run.py --all --minimize        leaves the inputs in testdata/fuzz that add coverage
    python tests/fuzz/run.py --coverage              what the corpora reach of pyparq/kernels/src

Needs clang with its runtime, and LLVM's tools for --coverage (Debian: clang-19, libclang-rt-19-dev, llvm-19). A
finding is written to the work folder, and the run ends with their number. The work folder keeps the build and what was
found.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORPORA = ROOT / "testdata" / "fuzz"
VERSIONS = ("", "-21", "-20", "-19", "-18", "-17", "-16", "-15", "-14")
MEMORY = 3000
"""MiB that a run may take."""
LARGEST_CORPUS = 320_000
"""Bytes that the archive of one target may take."""


def tool(name: str) -> str:
    """A program of LLVM's, in the version that the compiler has."""
    for version in VERSIONS:
        if shutil.which("clang++" + version) and (found := shutil.which(name + version)):
            return found
    raise SystemExit(f"{name} is missing: apt-get install clang-19 libclang-rt-19-dev llvm-19")


def build(work: Path) -> Path:
    """The program, built where something has changed."""
    beside = Path(sys.executable).parent
    search = os.pathsep.join([str(beside), os.environ.get("PATH", "")])
    cmake, ninja = (shutil.which(name, path=search) for name in ("cmake", "ninja"))
    if cmake is None or ninja is None:
        raise SystemExit("needs cmake and ninja: pip install '.[dev]'")
    folder = work / "build"
    configure = [cmake, "-S", str(HERE), "-B", str(folder), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}",
                 f"-DCMAKE_CXX_COMPILER={tool('clang++')}", f"-DPython_EXECUTABLE={sys.executable}"]  # fmt: skip
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([cmake, "--build", str(folder)], check=True, stdout=subprocess.DEVNULL)
    return folder / "fuzz"


QUICK = ":malloc_context_size=2:quarantine_size_mb=32:detect_stack_use_after_return=0:max_malloc_fill_size=64"
"""Makes AddressSanitizer two to five times faster. Python's own objects are not its business either: ``pymalloc``."""


def environment(target: str, profile: Path | None = None, thorough: bool = True) -> dict[str, str]:
    packages = [sysconfig.get_path("purelib"), *site.getsitepackages()]
    packages += [line for p in packages for link in Path(p).glob("*.pth") for line in _folders_of(link)]
    return os.environ | {
        "PYPARQ_FUZZ_TARGET": target,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(HERE), str(ROOT / "tests" / "support"), *packages]),
        "PYTHONMALLOC": "malloc" if thorough else "pymalloc",
        "PYTHONHOME": sys.base_prefix,
        "PYTHONDONTWRITEBYTECODE": "1",
        "LLVM_PROFILE_FILE": os.devnull if profile is None else str(profile),
        # Python leaks at exit; memory that cannot be had is an error that a target may raise.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:handle_segv=1" + ("" if thorough else QUICK),
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    }


def _folders_of(link: Path) -> list[str]:
    """Folders that a .pth file adds."""
    return [line for line in link.read_text().split("\n") if line and Path(line).is_dir()]


def unpack(target: str, work: Path) -> Path:
    """A folder with the inputs of the corpus, and those found since."""
    folder = work / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    archive = CORPORA / f"{target}.zip"
    if archive.exists():
        with zipfile.ZipFile(archive) as inputs:
            inputs.extractall(folder)
    return folder


def pack(target: str, inputs: list[bytes]) -> int:
    """Inputs to the corpus, the shortest first. Returns how many there are."""
    CORPORA.mkdir(parents=True, exist_ok=True)
    room = LARGEST_CORPUS
    count = 0
    with zipfile.ZipFile(CORPORA / f"{target}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for data in sorted(set(inputs), key=lambda d: (len(d), d)):
            room -= 120 + len(data) // 2
            if room < 0:
                break
            name = zipfile.ZipInfo(sha256(data).hexdigest()[:16], (1980, 1, 1, 0, 0, 0))
            archive.writestr(name, data, zipfile.ZIP_DEFLATED, 9)
            count += 1
    return count


@dataclass
class Outcome:
    """What a run of libFuzzer came to."""

    executions: int
    coverage: int
    inputs: int
    failed: bool

    def __str__(self) -> str:
        end = "A FINDING" if self.failed else "nothing found"
        return f"{self.executions:,} executions, {self.coverage} edges, {self.inputs} inputs: {end}"


def fuzz(program: Path, target: str, seconds: int, longest: int, options: argparse.Namespace) -> Outcome:
    """Run one target for so long, or until it fails."""
    work = options.work
    folder = unpack(target, work)
    found = work / "found" / target
    found.mkdir(parents=True, exist_ok=True)
    command = [str(program), str(folder), f"-max_total_time={seconds}", f"-max_len={longest}", f"-seed={options.seed}",
               f"-artifact_prefix={found}{os.sep}", "-timeout=20", f"-rss_limit_mb={MEMORY}", "-print_final_stats=1",
               "-reload=0", f"-use_value_profile={int(options.thorough)}", "-verbosity=1"]  # fmt: skip
    log = work / f"{target}.log"
    with log.open("w") as out:
        settings = environment(target, thorough=options.thorough)
        code = subprocess.run(command, env=settings, stdout=out, stderr=out, check=False).returncode
    text = log.read_text(errors="replace")
    executions = [int(n) for n in re.findall(r"number_of_executed_units: (\d+)", text)]
    edges = [int(n) for n in re.findall(r"cov: (\d+)", text)]
    tried = [int(n) for n in re.findall(r"^#(\d+)", text, re.M)]
    return Outcome(max(executions or tried or [0]), max(edges or [0]), len(list(folder.iterdir())), code != 0)


def minimize(program: Path, target: str, work: Path) -> int:
    """Keep the inputs that add coverage."""
    folder, least = unpack(target, work), work / "least" / target
    shutil.rmtree(least, ignore_errors=True)
    least.mkdir(parents=True)
    command = [str(program), "-merge=1", f"-rss_limit_mb={MEMORY}", str(least), str(folder)]
    subprocess.run(command, env=environment(target), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return pack(target, [p.read_bytes() for p in least.iterdir()])


def coverage(program: Path, targets: list[str], work: Path) -> None:
    """Print which lines of the kernels the corpora reach, by file."""
    profiles = []
    for target in targets:
        profile = work / f"{target}.profraw"
        inputs = sorted(str(p) for p in unpack(target, work).iterdir())
        for k in range(0, len(inputs), 2000):
            part = profile.with_suffix(f".{k}.profraw")
            subprocess.run([str(program), *inputs[k : k + 2000]], env=environment(target, part), check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
            profiles.append(str(part))
    data = work / "all.profdata"
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", "-o", str(data), *profiles], check=True)
    sources = ROOT / "pyparq" / "kernels" / "src"
    subprocess.run([tool("llvm-cov"), "report", str(program), f"-instr-profile={data}", "-show-region-summary=false",
                    "-show-branch-summary=false", str(sources)], check=True)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("target", nargs="*", help="targets; see targets.py")
    parser.add_argument("--all", action="store_true", help="all targets")
    parser.add_argument("--seconds", type=int, default=60, help="time in all")
    parser.add_argument("--seed", type=int, default=0, help="of the mutations; 0: another one each time")
    parser.add_argument("--thorough", action="store_true",
                        help="compared values guide the mutations too, and Python's objects are watched")  # fmt: skip
    parser.add_argument("--minimize", action="store_true", help="write the corpora anew")
    parser.add_argument("--coverage", action="store_true", help="print what the corpora reach")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "fuzz", help="folder for the build and findings")
    options = parser.parse_args()
    sys.path[:0] = [str(HERE), str(ROOT / "tests" / "support")]
    from targets import TARGETS  # the kernels must be installed for it

    chosen = options.target or sorted(TARGETS)
    if unknown := set(chosen) - set(TARGETS):
        parser.error(f"no target {', '.join(sorted(unknown))}. There are: {', '.join(sorted(TARGETS))}")
    program = build(options.work)
    if options.coverage:
        coverage(program, chosen, options.work)
        return 0
    if options.minimize:
        for target in chosen:
            print(f"{target}: {minimize(program, target, options.work)} inputs", flush=True)
        return 0
    if not options.target and not options.all:
        parser.error("name a target, or give --all")
    failed = 0
    for target in chosen:
        share = max(options.seconds // len(chosen), 1)
        outcome = fuzz(program, target, share, TARGETS[target].longest, options)
        failed += outcome.failed
        print(f"{target}: {outcome}", flush=True)
    return min(failed, 100)


if __name__ == "__main__":
    sys.exit(main())
