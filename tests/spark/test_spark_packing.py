"""The steps of docs/spark-platforms.md that bring pyparq to workers, run as they stand there. By
``pytest -m "cluster and slow"``: a wheel is compiled, and packages come from an index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import absent, require
from docs_blocks import blocks
from spark_standalone import standalone

import pyparq

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(3_000)]

ROOT = Path(__file__).parents[2]
PAGE = "docs/spark-platforms.md"

JOB = """
import os, sys
from pyspark.sql import SparkSession
import pyparq, pyparq.spark as ps

def there(batches):
    import os, sys
    import pyarrow as pa
    import pyparq
    for batch in batches:
        place = os.path.realpath(os.path.dirname(pyparq.__file__))
        yield pa.RecordBatch.from_pydict({"python": [sys.executable], "place": [place], "folder": [os.getcwd()]})

spark = SparkSession.builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
assert spark.sparkContext.master == os.environ["MASTER"], spark.sparkContext.master
folder = os.path.abspath("t")
ps.write(spark.range(0, 1000, 1, 4), folder, mode="overwrite", bloom_filters=["id"])
found = sorted(row.id for row in ps.read(spark, folder, small=0, engine="pyparq").collect())
assert found == list(range(1000)) == sorted(row.id for row in spark.read.parquet(folder).collect())
assert ps.verify(spark, folder).where("not ok").count() == 0
ps.register(spark)
assert spark.read.format("pyparq").option("filters", "id < 7").load(folder).count() == 7
rows = spark.range(0, 8, 1, 8).mapInArrow(there, "python string, place string, folder string").collect()
for row in rows:
    assert row.place.startswith(os.path.join(row.folder, "environment")) or "/environment/" in row.place, row
    assert row.place != os.path.dirname(pyparq.__file__), row
    assert "environment/bin/python" in row.python, row
print("workers", len({row.folder for row in rows}), rows[0].place)
print("all seen")
spark.stop()
"""

IN_A_PROGRAM = JOB.replace(
    "SparkSession.builder.",
    'SparkSession.builder.master(os.environ["MASTER"]).config("spark.archives", "env.tar.gz#environment").',
)


def ran(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-6000:]}"
    return done.stdout


def test_the_page_as_it_stands(tmp_path: Path) -> None:
    require("pyspark")
    if shutil.which("spark-submit", path=str(Path(sys.executable).parent)) is None:
        absent("needs spark-submit beside this Python")
    (block,) = (block for block in blocks(PAGE) if block.language == "bash" and "venv-pack" in block.code)
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{ROOT}", str(tmp_path / "pyparq")], check=True)
    (tmp_path / "cluster").mkdir()
    (tmp_path / "conf").mkdir()
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "program.py").write_text(IN_A_PROGRAM)
    with standalone(tmp_path / "cluster") as cluster:
        (tmp_path / "conf" / "spark-defaults.conf").write_text(
            f"spark.master {cluster.url}\nspark.driver.host 127.0.0.1\nspark.driver.bindAddress 127.0.0.1\n"
            "spark.executor.memory 512m\nspark.executor.cores 1\nspark.ui.enabled false\n"
        )
        environment = {
            **os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "SPARK_CONF_DIR": str(tmp_path / "conf"), "MASTER": cluster.url, "SPARK_LOCAL_IP": "127.0.0.1",
        }  # fmt: skip
        for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH"):
            environment.pop(name, None)
        said = ran(["bash", "-ec", block.code], tmp_path, environment)
        assert "all seen" in said, said[-6000:]
        print(next(line for line in said.splitlines() if line.startswith("workers ")))
        environment |= {"PYSPARK_PYTHON": "./environment/bin/python", "PYSPARK_DRIVER_PYTHON": sys.executable}
        said = ran([sys.executable, "program.py"], tmp_path, environment)
        assert "all seen" in said, said[-6000:]
    assert len(list((tmp_path / "dist").glob(f"pyparq-{pyparq.__version__}-*.whl"))) == 1
