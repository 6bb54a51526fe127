"""Work on a real Ray cluster: two nodes on this machine, with token authentication."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from batch_data import table, write_model
from himecat import HiMeCat
from himecat.batch import Placer
from himecat.batch.run import place_files
from himecat.errors import DataError
from himecat.runtime.engines import Engine, open_engine
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy
from ray_nodes import Cluster, KilledOnce, LittleRoom, added, killed_once, refused, two_nodes, where

pytest.importorskip("ray")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # A short name: sockets have paths of about a hundred characters.
    import tempfile

    from ray._private.authentication_test_utils import reset_auth_token_state

    with tempfile.TemporaryDirectory(prefix="r") as folder, two_nodes(Path(folder)) as found:
        before = {name: os.environ.get(name) for name in found.environment}
        os.environ.update(found.environment)
        try:
            reset_auth_token_state()
            found.wait(2)
            yield found
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
            reset_auth_token_state()
    assert found.processes() == []


@pytest.fixture(scope="module")
def engine(cluster: Cluster) -> Iterator[Engine]:
    with open_engine("ray", address=cluster.address) as found:
        yield found


def test_the_cluster_listens_on_the_loopback_address_only(cluster: Cluster) -> None:
    listening = {
        connection.laddr.ip
        for process in cluster.processes()
        for connection in process.net_connections("tcp")
        if connection.status == "LISTEN"
    }
    assert listening <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


def test_results_come_in_the_order_of_the_items_from_both_nodes(engine: Engine) -> None:
    assert engine.workers == 2
    assert list(engine.map(added, range(20), common=5)) == list(range(5, 25))
    found = list(engine.map(where, range(8), common=1.0))
    assert [item for item, *_ in found] == list(range(8))
    assert len({node for _, node, _ in found}) == 2


def test_a_task_whose_worker_is_killed_is_run_again(engine: Engine, tmp_path: Path) -> None:
    assert list(engine.map(killed_once, range(6), common=str(tmp_path))) == [0, 1, 4, 9, 16, 25]
    assert (tmp_path / "killed").exists()


def test_an_error_of_a_task_arrives_as_it_is(engine: Engine) -> None:
    with pytest.raises(DataError, match=r"^Item 3 cannot be used\.$"):
        list(engine.map(refused, range(6), common=None))


# -- predict -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, files, and the parts that this machine makes of them."""
    folder = tmp_path_factory.mktemp("parts")
    write_model(folder / "model")
    (folder / "data").mkdir()
    for number in range(12):
        parquet.write_table(table(300, 300 * number), folder / "data" / f"{number:02}.parquet")
    place_files(Placer(str(folder / "model")), [str(folder / "data")], str(folder / "here"), workers=1)
    return folder


def same_parts(one: Path, other: Path) -> bool:
    names = [sorted(file.name for file in folder.iterdir()) for folder in (one, other)]
    return names[0] == names[1] and all(
        (one / name).read_bytes() == (other / name).read_bytes() for name in names[0]
    )


def test_parts_are_the_same_bytes_though_a_worker_is_killed(
    cluster: Cluster, engine: Engine, work: Path, tmp_path: Path
) -> None:
    out, killed = tmp_path / "out", []

    def kill_one() -> None:
        until = time.monotonic() + 60
        while not list(out.glob("part-*")) and time.monotonic() < until:
            time.sleep(0.01)
        for process in cluster.processes():
            with suppress(psutil.NoSuchProcess):
                if not killed and "MapWorker" in " ".join(process.cmdline()):
                    process.kill()
                    killed.append(process.pid)

    killer = threading.Thread(target=kill_one)
    killer.start()
    done = place_files(
        Placer(str(work / "model")), [str(work / "data")], str(out), engine="ray", address=cluster.address
    )
    killer.join()
    assert killed
    assert (done.parts, done.counts.documents) == (12, 3600)
    assert same_parts(out, work / "here")


def test_a_mistake_of_the_user_is_one_sentence(engine: Engine, work: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    parquet.write_table(table(5), tmp_path / "data" / "a.parquet")
    parquet.write_table(table(5).drop_columns(["text"]), tmp_path / "data" / "b.parquet")
    with pytest.raises(DataError, match=r"b\.parquet"):
        place_files(
            Placer(str(work / "model")), [str(tmp_path / "data")], str(tmp_path / "out"), engine="ray"
        )


def test_a_placer_in_ray_data(engine: Engine, work: Path) -> None:
    import ray.data

    documents = table(400)
    placed = ray.data.from_arrow([documents.slice(0, 200), documents.slice(200)]).map_batches(
        Placer,
        fn_constructor_args=(str(work / "model"),),
        batch_format="pyarrow",
        batch_size=100,
        compute=ray.data.ActorPoolStrategy(size=2),
    )
    rows = sorted(placed.take_all(), key=lambda row: int(row["id"][1:]))
    wanted = Placer(str(work / "model"))(documents)
    assert [row["path"] for row in rows] == wanted["path"].to_pylist()
    assert list(rows[0]) == wanted.column_names


def test_a_wrong_token_is_one_sentence(cluster: Cluster, work: Path, tmp_path: Path) -> None:
    environment = os.environ | cluster.environment | {"RAY_AUTH_TOKEN": "wrong"}
    environment.pop("RAY_AUTH_TOKEN_PATH")
    command = ["predict", str(work / "model"), str(work / "data"), "-o", f"{tmp_path}/out/", "-q"]
    ended = subprocess.run(
        [sys.executable, "-m", "himecat", *command, "--engine", "ray", "--address", cluster.address],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "asks for its token" in ended.stderr


class Killing:
    """An engine, one of whose workers is killed in every pass."""

    name, workers = "ray", 2

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine, self.folder, self.passes = engine, folder, 0

    def map(self, task: Any, items: Any, *, common: Any) -> Iterator[Any]:
        self.passes += 1
        return self.engine.map(
            KilledOnce(task, str(self.folder / f"killed-{self.passes}")), items, common=common
        )


def test_a_fit_on_the_cluster_is_that_of_this_process(
    engine: Engine, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = sample_documents()
    labelled = [{**row, "labels": label} for row, label in zip(rows, sample_split(rows), strict=True)]
    files = [tmp_path / f"{number}.jsonl" for number in range(3)]
    for number, file in enumerate(files):
        file.write_text("".join(json.dumps(one) + "\n" for one in labelled[number::3]))
    monkeypatch.setattr("himecat.estimator.room_for", lambda *given: LittleRoom())
    killing = Killing(engine, tmp_path)
    with open_engine("ray", address=cluster.address, workers=1) as one:
        kept = {}
        for name, own in {"here": None, "two": engine, "one": one, "killed": killing}.items():
            model = HiMeCat(sample_taxonomy(), METADATA).fit(files, engine=own)  # type: ignore[arg-type]
            assert len(model.space_.documents) < len(rows)
            model.save(tmp_path / name)
            kept[name] = (tmp_path / name / "weights.safetensors").read_bytes()
    assert killing.passes >= 2
    assert len(list(tmp_path.glob("killed-*"))) == killing.passes
    assert kept["here"] == kept["two"] == kept["one"] == kept["killed"]
