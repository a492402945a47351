"""The benchmark runs on small tables, and everybody answers alike; what it shows is reckoned rightly."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytest.importorskip("cramjam")

pytestmark = pytest.mark.skipif(not BENCHMARKS.exists(), reason="a source distribution has no benchmarks")


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    """The module ``run`` of benchmarks/, with its neighbours, which are scripts and no package."""
    before = set(sys.modules)
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import run

        yield run
    finally:
        sys.path.remove(str(BENCHMARKS))
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(BENCHMARKS)):
                del sys.modules[name]


def run_lines(bench: Any, folder: Path, *only: str) -> dict[str, Any]:
    engines, missing = bench.available_engines()
    assert missing == {}
    results: dict[str, Any] = bench.run_all(engines, bench.Inputs(folder, bench.Sizes.least()), only)
    return results


def right(results: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines; no engine answered wrongly, or refused what it is known to do."""
    for line in results["lines"]:
        for engine, reason in line.get("refused", {}).items():
            assert reason.startswith("NotOffered"), (line["name"], engine, reason)
    found: list[dict[str, Any]] = results["lines"]
    return found


@pytest.mark.slow
def test_filters(bench: Any, tmp_path: Path) -> None:
    lines = right(run_lines(bench, tmp_path, "filters"))
    assert len(lines) >= 14
    assert {line["writer"] for line in lines} == {"pyarrow", "polars", "duckdb", "datafusion", "pyparq"}
    assert all(len(line["engines"]) == 5 and line["ratio"] > 0 for line in lines)


def test_writes_and_rows_by_number(bench: Any, tmp_path: Path) -> None:
    lines = right(run_lines(bench, tmp_path, "orders, snappy", "take of", "one key in"))
    write = next(line for line in lines if line["name"] == "orders, snappy")
    assert write["best_peer"] != "duckdb"  # it writes no page index
    assert all(timing["file_bytes"] > 1000 for timing in write["engines"].values())
    take = next(line for line in lines if line["name"].startswith("take"))
    assert list(take["refused"]) == ["datafusion"]


@pytest.mark.slow
def test_every_group(bench: Any, tmp_path: Path) -> None:
    """Every line but those that start interpreters; lineitem only where tpchgen-cli is installed."""
    groups = [group for group in bench.GROUPS if group != "processes"]
    results = run_lines(bench, tmp_path / "data", *groups)
    lines = right(results)
    assert all("lineitem" in name for name in results["left_out"])
    assert {line["group"] for line in lines} == set(groups)
    bench.report.save(results, tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert all(line["name"] in text for line in lines)
    for chart in ("chart.svg", "growth.svg"):
        assert len(list(ElementTree.parse(tmp_path / chart).iter())) > 50


@pytest.mark.slow
def test_processes(bench: Any, tmp_path: Path) -> None:
    """An interpreter of its own per engine: two threads against one, and memory."""
    engines = [engine for engine in bench.available_engines()[0] if engine.name in ("pyparq", "polars")]
    inputs = bench.Inputs(tmp_path, bench.Sizes.least())
    lines = [line for line in bench.GROUPS["processes"](inputs) if line.name.startswith("events")]
    found = [line.measure(engines, inputs) for line in lines]
    assert {item["kind"] for item in found} == {"speedup", "memory"}
    for item in found:
        assert set(item["engines"]) == {"pyparq", "polars"}
        if item["kind"] == "memory":
            assert all(figures["result"] > 100_000 for figures in item["engines"].values())


def test_a_wrong_answer_leaves_a_peer_out_and_stops_ours(bench: Any, tmp_path: Path) -> None:
    engines = {engine.name: engine for engine in bench.available_engines()[0]}
    inputs = bench.Inputs(tmp_path, bench.Sizes.least())
    line = next(iter(bench.GROUPS["filters"](inputs)))

    def off_by_one(engine: Any) -> Any:
        class Wrong(type(engine)):  # type: ignore[misc]
            def run(self, path: Path, query: Any) -> pa.Table:
                return super().run(path, query).slice(1)

        return Wrong()

    found = line.measure([engines["pyparq"], engines["polars"], off_by_one(engines["pyarrow"])], inputs)
    assert list(found["refused"]) == ["pyarrow"]
    assert "rows, expected" in found["refused"]["pyarrow"]
    assert found["best_peer"] == "polars"
    with pytest.raises(AssertionError, match="rows, expected"):
        line.measure([off_by_one(engines["pyparq"]), engines["polars"]], inputs)


def test_means_and_worst_lines(bench: Any) -> None:
    def line(ratio: float, name: str, counted: bool = True) -> dict[str, Any]:
        return {
            "kind": "time", "group": "scans", "name": name, "writer": "polars", "ratio": ratio, "counted": counted,
        }  # fmt: skip

    items = [line(0.5, "a"), line(2.0, "b"), line(9.0, "c", counted=False)]
    ((group, (mean, worst)),) = bench.report.means(items).items()
    assert (group, worst["name"]) == ("scans", "b")
    assert mean == pytest.approx(1.0)
    text = "\n".join(bench.report.summary({"lines": items, "clock": "wall"}))
    assert "| scans | 1.00 (0.5) | 2.00: b, by polars | 1 of 2 |" in text
