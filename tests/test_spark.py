"""A placer in Spark, where there is a Java."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import himecat
from batch_data import table, write_model
from himecat.batch import Placer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs a Java, and there is none")
    sources = os.pathsep.join([str(Path(himecat.__file__).parent.parent), str(Path(__file__).parent)])
    before = {name: os.environ.get(name) for name in ("PYSPARK_PYTHON", "PYTHONPATH", "SPARK_LOCAL_IP")}
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": sources, "SPARK_LOCAL_IP": "127.0.0.1"}
    session = (
        pyspark.sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    yield session
    session.stop()
    for name, value in before.items():
        os.environ.pop(name)
        if value is not None:
            os.environ[name] = value


def test_a_placer_in_map_in_arrow(spark: Any, tmp_path: Path) -> None:
    write_model(tmp_path / "model")
    placer, documents = Placer(str(tmp_path / "model")), table(500)
    wanted = placer(documents)

    def place(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield from placer(batch).to_batches()

    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    frame = spark.createDataFrame(documents.to_pandas()).repartition(4)
    schema = placer(to_arrow_schema(frame.schema).empty_table()).schema
    found = frame.mapInArrow(place, from_arrow_schema(schema)).collect()
    paths = {row["id"]: row["path"] for row in found}
    assert paths == dict(zip(wanted["id"].to_pylist(), wanted["path"].to_pylist(), strict=True))
