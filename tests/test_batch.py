"""Tables placed by a small object that can be sent anywhere, and files placed in parts."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from batch_data import table, texts, write_model
from conftest import Himecat
from himecat import Default, HiMeCat
from himecat.batch import Placer
from himecat.batch.parts import LIST
from himecat.batch.pieces import cut, files_of
from himecat.batch.run import place_files
from himecat.errors import DataError, MissingExtraError, ModelFolderError, OutputError, UsageError

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("placer") / "model"
    write_model(folder)
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "day=2").mkdir(parents=True)
    parquet.write_table(table(30), folder / "a.parquet", row_group_size=10)
    parquet.write_table(table(20, 30), folder / "day=2" / "b.parquet")
    (folder / "_SUCCESS").touch()
    (folder / "_old.parquet").write_text("not read")
    return folder


def joined(folder: Path) -> Any:
    return arrow.concat_tables([parquet.read_table(one) for one in sorted(folder.glob("*.parquet"))])


# -- a placer ------------------------------------------------------------------------------------------


def test_a_placer_gives_what_predict_writes(model: Path, tmp_path: Path, himecat: Himecat) -> None:
    documents = table(40)
    parquet.write_table(documents, tmp_path / "new.parquet")
    assert himecat("predict", model, tmp_path / "new.parquet", "-o", tmp_path / "sorted.parquet").code == 0
    wanted = parquet.read_table(tmp_path / "sorted.parquet")
    placer = pickle.loads(pickle.dumps(Placer(str(model))))
    assert placer(documents).equals(wanted)
    assert placer(documents.to_batches()[0]).equals(wanted)
    assert placer(documents.to_pandas())["path"].tolist() == wanted["path"].to_pylist()
    # What Dask asks for, to know the columns.
    assert list(placer(documents.slice(0, 0).to_pandas()).columns) == wanted.column_names
    assert len(pickle.dumps(placer)) < 1000


def test_the_answer_does_not_depend_on_the_other_rows(model: Path) -> None:
    documents, placer = table(60), Placer(str(model))
    # Two rows with the same id are two rows.
    documents = arrow.concat_tables([documents, documents.slice(5, 1)])
    whole = placer(documents)
    for row in (0, 5, 17, 59):
        alone, among = placer(documents.slice(row, 1)).to_pylist()[0], whole.slice(row, 1).to_pylist()[0]
        for name, value in among.items():
            # Products of other shapes may round the last digit that is told otherwise.
            assert alone[name] == (pytest.approx(value, abs=2e-6) if isinstance(value, float) else value), (
                name
            )
    assert placer(documents.slice(0, 0)).schema.equals(whole.schema)


def test_options_of_a_placer(model: Path) -> None:
    documents = table(8).append_column("labels", arrow.array(["politics/law", *[None] * 7]))
    found = Placer(str(model), columns=["id"], top=1, min_confidence=0.999, separator=">")(documents)
    assert found.column_names[:3] == ["id", "path", "level1"]
    assert {"alternative1", "guess", "labelled"} < {*found.column_names}
    assert found["path"][0].as_py() == "politics > law"
    assert found["labelled"].to_pylist() == [True, *[False] * 7]
    assert "labelled" not in Placer(str(model), ignore_labels=True)(documents).column_names
    renamed = table(8).rename_columns(["id", "body", "tags"])
    assert Placer(str(model), text="body")(renamed)["path"].equals(Placer(str(model))(table(8))["path"])


def test_bad_rows_and_bad_arguments(model: Path, tmp_path: Path) -> None:
    documents = arrow.table({"text": ["a goal", " ", None]})
    with pytest.raises(DataError, match=r"2 documents \(row 1, row 2\): the text is empty"):
        Placer(str(model))(documents)
    assert Placer(str(model), skip_bad=True)(documents)["path"].to_pylist()[1:] == [None, None]
    with pytest.raises(UsageError, match="takes a pyarrow table or batch, not a list"):
        Placer(str(model))(["a goal"])
    with pytest.raises(UsageError, match="top must be at least 0"):
        Placer(str(model), top=-1)
    with pytest.raises(ModelFolderError):
        Placer(str(tmp_path / "nowhere"))(documents)
    with pytest.raises(ModelFolderError, match="not the model that the job was begun with"):
        Placer(str(model), digest="0")(documents)


# -- files and pieces ----------------------------------------------------------------------------------


def test_files_of_globs_and_folders(data: Path, tmp_path: Path) -> None:
    both = [str(data / "a.parquet"), str(data / "day=2" / "b.parquet")]
    assert files_of([str(data)]) == both
    assert files_of([str(data / "*.parquet")])[1:] == both[:1]
    assert files_of([*both, both[0]]) == both
    with pytest.raises(DataError, match="No file matches"):
        files_of([str(data / "*.csv")])
    assert files_of([str(data)], without=str(data / "day=2")) == both[:1]
    with pytest.raises(DataError, match="where the result goes"):
        files_of([str(data)], without=str(data))


def test_large_files_are_cut_at_row_groups(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("himecat.batch.pieces._ROWS", 20)
    pieces = cut(files_of([str(data)])).pieces
    assert [(one.first, one.last, one.first_row) for one in pieces] == [(0, 2, 0), (2, 3, 20), (0, 1, 0)]
    assert [one.part for one in pieces] == [f"part-0000{number}.parquet" for number in range(3)]


def test_parts_hold_what_one_file_would(
    model: Path, data: Path, tmp_path: Path, himecat: Himecat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("himecat.batch.pieces._ROWS", 10)
    for workers in (1, 2):
        ended = himecat("predict", model, data, "-o", f"{tmp_path / str(workers)}/", "--threads", workers)
        assert ended.code == 0, ended.err
        assert "Placed 50 documents in 4 parts" in ended.err
    for file in sorted((tmp_path / "1").iterdir()):
        assert file.read_bytes() == (tmp_path / "2" / file.name).read_bytes()
    whole = himecat(
        "predict", model, data / "a.parquet", data / "day=2" / "b.parquet", "-o", tmp_path / "x.parquet"
    )
    assert whole.code == 0, whole.err
    assert joined(tmp_path / "1")["path"].equals(parquet.read_table(tmp_path / "x.parquet")["path"])
    assert joined(tmp_path / "1").schema.equals(parquet.read_schema(tmp_path / "x.parquet"))


def test_json_lines_become_a_part_each(model: Path, tmp_path: Path, himecat: Himecat) -> None:
    for name, start in (("a", 0), ("b", 10)):
        lines = [json.dumps({key: one[key] for key in ("id", "text", "tags")}) for one in texts(10, start)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    ended = himecat("predict", model, tmp_path / "*.jsonl", "-o", f"{tmp_path}/out/", "--threads", 1)
    assert ended.code == 0, ended.err
    assert joined(tmp_path / "out")["id"].to_pylist() == [f"d{number}" for number in range(20)]
    lines = himecat("predict", model, tmp_path / "*.jsonl", "-o", "-", "-q").out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [f"d{number}" for number in range(20)]


# -- going on ------------------------------------------------------------------------------------------


def test_finished_parts_are_not_made_again(model: Path, data: Path, tmp_path: Path) -> None:
    out, placer = tmp_path / "out", Placer(str(model))
    place_files(placer, [str(data)], str(out), workers=1)
    first = (out / "part-00000.parquet").stat().st_mtime_ns
    second = (out / "part-00001.parquet").read_bytes()
    (out / "part-00001.parquet").unlink()
    done = place_files(placer, [str(data)], str(out), workers=1)
    assert (done.parts, done.before, done.counts.documents) == (1, 1, 20)
    assert (out / "part-00000.parquet").stat().st_mtime_ns == first
    assert (out / "part-00001.parquet").read_bytes() == second
    assert place_files(placer, [str(data)], str(out), workers=1).parts == 0


def test_a_folder_of_another_job_is_refused(model: Path, data: Path, tmp_path: Path) -> None:
    out, placer = tmp_path / "out", Placer(str(model))
    place_files(placer, [str(data)], str(out), workers=1)
    with pytest.raises(OutputError, match="made with other options"):
        place_files(Placer(str(model), top=1), [str(data)], str(out), workers=1)
    os.utime(data / "a.parquet", (1, 1))
    with pytest.raises(OutputError, match="from other files, or from files that have changed"):
        place_files(placer, [str(data)], str(out), workers=1)
    HiMeCat(method=Default(min_count=1), threads=1).fit(["a goal", "a law"], ["a", "b"]).save(
        tmp_path / "other"
    )
    with pytest.raises(OutputError, match="made by another model"):
        place_files(Placer(str(tmp_path / "other")), [str(data)], str(out), workers=1)
    (out / LIST).write_text("{")
    with pytest.raises(OutputError, match="cannot be read"):
        place_files(placer, [str(data)], str(out), workers=1)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "letter.txt").write_text("mine")
    with pytest.raises(OutputError, match="holds other files"):
        place_files(placer, [str(data)], str(foreign), workers=1)
    assert [one.name for one in foreign.iterdir()] == ["letter.txt"]


@pytest.mark.skipif(sys.platform == "win32", reason="locks of folders are those of POSIX")
def test_two_runs_do_not_share_a_folder(model: Path, data: Path, tmp_path: Path) -> None:
    import fcntl

    out = tmp_path / "out"
    out.mkdir()
    held = os.open(out, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(OutputError, match="Another process writes to"):
        place_files(Placer(str(model)), [str(data)], str(out), workers=1)
    os.close(held)
    assert place_files(Placer(str(model)), [str(data)], str(out), workers=1).parts == 2


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_run_that_was_killed_goes_on(model: Path, tmp_path: Path) -> None:
    data, out = tmp_path / "many", tmp_path / "out"
    data.mkdir()
    for number in range(30):
        parquet.write_table(table(200, 200 * number), data / f"{number:02}.parquet")
    command = [sys.executable, "-m", "himecat", "predict", str(model), str(data), "-o", f"{out}/", "-q"]
    child = subprocess.Popen([*command, "--threads", "1"])
    until = time.monotonic() + 60
    while not list(out.glob("part-*.parquet")) and time.monotonic() < until and child.poll() is None:
        time.sleep(0.005)
    child.send_signal(signal.SIGKILL)
    child.wait()
    there = {one.name: one.stat().st_mtime_ns for one in out.glob("part-*.parquet")}
    assert len(there) > 0
    done = place_files(Placer(str(model)), [str(data)], str(out), workers=1)
    assert done.before == len(there)
    assert {name: (out / name).stat().st_mtime_ns for name in there} == there
    assert sorted(one.name for one in out.iterdir()) == [LIST, *(f"part-{n:05}.parquet" for n in range(30))]
    assert joined(out)["id"].to_pylist() == [f"d{number}" for number in range(6000)]


# -- what may be wrong ---------------------------------------------------------------------------------


def test_a_damaged_file_in_the_middle_leaves_the_parts_before_it(
    model: Path, data: Path, tmp_path: Path, himecat: Himecat
) -> None:
    raw = (data / "day=2" / "b.parquet").read_bytes()
    (data / "day=2" / "b.parquet").write_bytes(raw[:4] + bytes(300) + raw[304:])
    ended = himecat("predict", model, data, "-o", f"{tmp_path}/out/", "--threads", 1)
    assert ended.code == 2
    assert "b.parquet" in ended.err
    assert len(ended.errors) == 1
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == [LIST, "part-00000.parquet"]
    (data / "c.parquet").write_text("no Parquet")
    assert (
        "c.parquet: the Parquet file is damaged"
        in himecat("predict", model, data, "-o", f"{tmp_path}/o/").err
    )


def test_a_bad_document_is_named_by_its_row(model: Path, tmp_path: Path, himecat: Himecat) -> None:
    rows = [{"id": str(number), "text": "a goal" if number != 17 else ""} for number in range(30)]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "new.parquet", row_group_size=10)
    ended = himecat("predict", model, tmp_path / "new.parquet", "-o", f"{tmp_path}/out/")
    assert ended.code == 2
    assert "new.parquet row 17: the text is empty." in ended.err
    assert [one.name for one in (tmp_path / "out").iterdir()] == [LIST]
    (tmp_path / "out" / LIST).unlink()
    ended = himecat("predict", model, tmp_path / "new.parquet", "-o", f"{tmp_path}/out/", "--skip-bad")
    assert ended.code == 0
    assert "Placed 29 documents, skipped 1" in ended.err


def test_empty_files_and_different_columns(model: Path, data: Path, tmp_path: Path, himecat: Himecat) -> None:
    parquet.write_table(table(3).slice(0, 0), data / "c.parquet")
    parquet.write_table(table(3).append_column("path", arrow.array(["x", "y", "z"])), data / "d.parquet")
    ended = himecat("predict", model, data, "-o", f"{tmp_path}/out/", "--threads", 1)
    assert ended.code == 0, ended.err
    assert "the files have different columns" in ended.err
    names = [parquet.read_schema(one).names for one in sorted((tmp_path / "out").glob("*.parquet"))]
    assert all("himecat_path" in one for one in names)
    assert parquet.read_table(tmp_path / "out" / "part-00001.parquet").num_rows == 0


def test_a_file_that_changes_or_vanishes_is_told(model: Path, data: Path, tmp_path: Path) -> None:
    from himecat.batch.parts import Job, place_piece

    found = cut(files_of([str(data)]))
    job = Job(Placer(str(model)), str(tmp_path), found.names)
    os.utime(data / "a.parquet", (1, 1))
    with pytest.raises(DataError, match="has changed since the job began"):
        place_piece(job, found.pieces[0])
    (data / "a.parquet").unlink()
    with pytest.raises(DataError, match="the file is not there"):
        place_piece(job, found.pieces[0])
    assert not list(tmp_path.glob("part*"))


def test_what_a_folder_does_not_go_with(model: Path, data: Path, tmp_path: Path, himecat: Himecat) -> None:
    for options, sentence in (
        (["-o", "x.jsonl", "--engine", "ray"], "--engine ray writes a folder of parts: -o out/."),
        (["-o", "x.jsonl", "--address", "auto"], "--address writes a folder of parts: -o out/."),
        (["-o", f"{tmp_path}/out/", "--engine", "spark"], "There is no engine 'spark'"),
        (["-o", f"{tmp_path}/out/", "--address", "auto"], "--address is that of a Ray cluster"),
        (["-o", f"{tmp_path}/out/", "--report", "r.html"], "--report goes with a file of predictions"),
        (["-o", "s5://bucket/out"], "s5://bucket"),
    ):
        ended = himecat("predict", model, data, *options)
        assert ended.code == 2
        assert sentence in ended.err


# -- addresses -----------------------------------------------------------------------------------------


@pytest.fixture
def memory(data: Path) -> Iterator[Any]:
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory")
    files.put(str(data), "/data", recursive=True)
    yield files
    files.rm("/", recursive=True)


def test_files_models_and_parts_at_addresses(model: Path, data: Path, tmp_path: Path, memory: Any) -> None:
    memory.put(str(model), "/model", recursive=True)
    done = place_files(Placer("memory://model"), ["memory://data"], "memory://out", workers=1)
    assert done.counts.documents == 50
    place_files(Placer(str(model)), [str(data)], str(tmp_path / "out"), workers=1)
    assert sorted(name.rpartition("/")[2] for name in memory.ls("/out", detail=False)) == [
        LIST,
        "part-00000.parquet",
        "part-00001.parquet",
    ]
    for name in ("part-00000.parquet", "part-00001.parquet"):
        assert memory.cat_file(f"/out/{name}") == (tmp_path / "out" / name).read_bytes()
    memory.rm("/out/part-00001.parquet")
    again = place_files(Placer("memory://model"), ["memory://data"], "memory://out", workers=1)
    assert (again.parts, again.before) == (1, 1)


def test_addresses_that_cannot_be_reached(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="No file matches"):
        files_of(["memory://nothing/*.parquet"])
    pytest.importorskip("fsspec").filesystem("memory").pipe("/a.csv", b"text\n")
    with pytest.raises(UsageError, match="only Parquet files are read"):
        cut(["memory://a.csv"])
    with pytest.raises(UsageError, match="can only be an entire path component"):
        files_of(["memory://data/**.parquet"])
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtraError, match=r'pip install "himecat\[fsspec\]"'):
        files_of(["s3://bucket/*.parquet"])
