"""The build: a compiler from PyPI is asked for where, and only where, the machine has none that knows C++20."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

BACKEND = Path(__file__).parents[2] / "pyparq" / "kernels" / "backend" / "pyparq_build.py"


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The backend, with nothing behind it: what is asked is what it adds."""

    def fails(*args: object) -> str:
        raise RuntimeError("CMake failed")

    hooks = (
        "build_sdist", "get_requires_for_build_sdist", "prepare_metadata_for_build_editable",
        "prepare_metadata_for_build_wheel",
    )  # fmt: skip
    build = SimpleNamespace(
        get_requires_for_build_wheel=lambda settings: ["ninja"],
        get_requires_for_build_editable=lambda settings: ["ninja"],
        build_wheel=fails, build_editable=fails, **dict.fromkeys(hooks, fails),
    )  # fmt: skip
    package = ModuleType("scikit_build_core")
    package.build = build  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "scikit_build_core", package)
    monkeypatch.setitem(sys.modules, "scikit_build_core.build", build)
    monkeypatch.delenv("CXX", raising=False)
    spec = importlib.util.spec_from_file_location("pyparq_build", BACKEND)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fake_compiler(folder: Path, status: int) -> None:
    path = folder / "g++"
    path.write_text(f"#!/bin/sh\nexit {status}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("hook", ["get_requires_for_build_wheel", "get_requires_for_build_editable"])
def test_a_compiler_is_required_where_none_works(
    backend: ModuleType, hook: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    requires = getattr(backend, hook)
    assert requires(None) == ["ninja", "ziglang>=0.13"]
    fake_compiler(tmp_path, 1)  # too old, say: it does not take the program
    assert requires(None) == ["ninja", "ziglang>=0.13"]
    fake_compiler(tmp_path, 0)
    assert requires(None) == ["ninja"]
    (tmp_path / "g++").unlink()
    monkeypatch.setenv("CXX", "/opt/mine/c++")
    assert requires(None) == ["ninja"]


def test_the_tools_of_the_compiler_from_pypi_are_used(
    backend: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "ziglang"
    package.mkdir()
    (package / "__init__.py").touch()
    zig = package / "zig"
    zig.write_text('#!/bin/sh\necho "$@"\n')
    zig.chmod(0o755)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CMAKE_ARGS", raising=False)
    with backend.compiler():
        compiler = os.environ["CXX"]
        said = subprocess.run([compiler, "-c", "x.cpp"], capture_output=True, text=True, check=True).stdout
        archiver = os.environ["CMAKE_ARGS"].split("-DCMAKE_AR=")[1].split()[0]
        assert subprocess.run([archiver, "qc"], capture_output=True, text=True, check=True).stdout == "ar qc\n"
    assert said == "c++ -mcpu=baseline -fno-sanitize=undefined -c x.cpp\n"
    assert "CXX" not in os.environ
    assert "CMAKE_ARGS" not in os.environ
    assert not os.path.exists(compiler)


def test_a_failed_build_ends_with_what_to_do(
    backend: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "/no/such/compiler")
    for build in (backend.build_wheel, backend.build_editable):
        with pytest.raises(RuntimeError, match="CMake failed"):
            build(str(tmp_path))
        assert capfd.readouterr().err.splitlines()[-1].startswith("pyparq: the kernels were not built")
