"""Fits of more documents than there is memory for: samples, passes over all documents, and what they agree with."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from himecat import Default, HiMeCat
from himecat.classifier import fit_memory
from himecat.classifier.fit_memory import RoomWithin
from himecat.errors import DataError, UsageError
from himecat.input import pile as piles
from himecat.input.builder import load_corpus
from himecat.input.documents import Document, Fields
from himecat.input.intake import Reading, read_part
from himecat.input.problems import Problems
from himecat.input.sampling import Sample
from himecat.runtime.memory import memory_budget
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy

TEXTS, DOCUMENTS = 600, 200


class Small:
    """Room for a few documents."""

    def texts(self) -> int:
        return TEXTS

    def documents(self, n_leaves: int | None, n_words: int, n_values: int) -> int:
        return DOCUMENTS


def letters() -> list[dict[str, Any]]:
    rows = sample_documents()
    return [{**row, "labels": label} for row, label in zip(rows, sample_split(rows), strict=True)]


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RoomWithin, "texts", Small.texts)
    monkeypatch.setattr(RoomWithin, "documents", Small.documents)


def documents(count: int) -> list[Document]:
    return [
        Document("", f"d{row}", "a fox", {"by": [f"v{row % 7}"]}, "x" if row % 50 == 0 else None, True)
        for row in range(count)
    ]


def held_of(sample: Sample, found: list[Document], size: int) -> list[Document]:
    return [one for first in range(0, len(found), size) for one in sample.held(found[first : first + size])]


@pytest.mark.parametrize("expected", [0, 3000, 5000])
def test_a_sample_does_not_depend_on_the_order_or_the_batches(expected: int) -> None:
    found = documents(3000)
    first, second = Sample(Small(), expected=expected), Sample(Small())
    names = []
    for sample, order, size in ((first, found, 64), (second, found[::-1], 500)):
        held = held_of(sample, order, size)
        names.append([{held[row].id for row in rows.tolist()} for rows in sample.rows(10, 10)])
    assert names[0] == names[1]
    wide, narrow = names[0]
    labelled = {one.id for one in found if one.labels is not None}
    assert labelled <= narrow <= wide
    assert TEXTS <= len(wide) <= TEXTS + len(labelled)
    assert DOCUMENTS <= len(narrow) <= DOCUMENTS + len(labelled)


def test_a_sample_holds_few_documents_at_once_and_counts_the_values_of_the_others() -> None:
    found = documents(20_000)
    sample = Sample(Small(), expected=20_000)
    held = held_of(sample, found, 64)
    assert len(held) < 3 * TEXTS + 400
    counted = sum(sample.counts["by"].values()) + len(held)
    assert counted == sample.n_documents == 20_000


def test_parts_that_are_read_apart_give_the_sample_of_the_whole(tmp_path: Path) -> None:
    rows = letters()
    files = []
    for number in range(3):
        files.append(tmp_path / f"{number}.jsonl")
        files[-1].write_text("".join(json.dumps(one) + "\n" for one in rows[number::3]))
    fields = Fields(metadata=("senders",))
    whole = load_corpus(files, fields, sample=Sample(Small()))
    apart = load_corpus(
        files,
        fields,
        sample=Sample(Small()),
        each=lambda task, common, parts: (task(common, part) for part in parts),
    )
    assert apart.corpus.ids == whole.corpus.ids
    assert apart.corpus.words.names == whole.corpus.words.names
    assert (
        apart.corpus.metadata["senders"].vocabulary.names == whole.corpus.metadata["senders"].vocabulary.names
    )
    counts = [one.corpus.metadata["senders"].vocabulary.counts.tolist() for one in (apart, whole)]
    assert counts[0] == counts[1]
    assert apart.labels == whole.labels


def test_a_sample_has_all_labelled_documents_and_the_values_that_two_documents_share(tmp_path: Path) -> None:
    rows = letters()
    loaded = load_corpus(rows, Fields(metadata=("senders",)), sample=Sample(Small()))
    labelled = sum(one.get("labels") is not None for one in rows)
    assert len(loaded.labels) == labelled
    assert loaded.drawn is not None
    assert loaded.drawn.n_documents == len(rows)
    senders = [value for one in rows for value in set(_values(one.get("senders")))]
    shared = {name for name in senders if senders.count(name) > 1}
    assert set(loaded.corpus.metadata["senders"].vocabulary.names) == shared


def _values(found: Any) -> list[str]:
    return found if isinstance(found, list) else [] if found is None else [found]


def test_problems_of_parts_are_those_of_the_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"id": "a", "text": "a fox"}\n{"id": "b", "text": " "}\nno json\n')
    found = read_part(Reading(Fields(), Sample(Small()), lenient=False), file)
    problems = Problems()
    problems.extend(found.problems)
    assert found.skipped == [1, 2]
    assert found.n_records == 3
    assert problems.counts["error"] == 2


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    folder = tmp_path_factory.mktemp("parts")
    rows = letters()
    half = len(rows) // 2
    for name, part in (("0", rows[:half]), ("1", rows[half:])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in part))
    return sorted(folder.iterdir())


def fitted(source: Any, **more: Any) -> HiMeCat:
    model = HiMeCat(sample_taxonomy(), METADATA, method=Default(), memory="1GB", **more)
    return model.fit(source)


@pytest.mark.usefixtures("little_room")
def test_all_documents_speak_for_the_metadata_values(files: list[Path]) -> None:
    model = fitted(files)
    n_documents = len(letters())
    assert len(model.space_.documents) < n_documents
    sender = model.classifier_.views["metadata"].types["senders"]
    names = model.space_.values["senders"].names
    senders = [set(_values(one.get("senders"))) for one in letters()]
    counts = [sum(name in one for one in senders) for name in names]
    assert sender.counts.tolist() == counts
    votes = model.classifier_.scorer.votes
    if votes is not None and "senders" in votes.types:
        assert votes.types["senders"].counts.tolist() == counts
    # And what is learned is worth something.
    assert model.quality_ is not None
    placed = model.predict([one["text"] for one in letters()[:20]])
    assert len(set(placed)) > 1


@pytest.mark.usefixtures("little_room")
def test_the_model_does_not_depend_on_threads_or_on_where_parts_are_read(
    files: list[Path], tmp_path: Path
) -> None:
    from himecat.runtime.engines import LocalEngine

    models = [
        fitted(files, threads=1),
        fitted(files, threads=2),
        HiMeCat(sample_taxonomy(), METADATA, memory="1GB").fit(files, engine=LocalEngine(2)),
    ]
    kept = []
    for number, model in enumerate(models):
        model.save(tmp_path / str(number))
        kept.append((tmp_path / str(number) / "weights.safetensors").read_bytes())
    assert kept[0] == kept[1] == kept[2]


@pytest.mark.usefixtures("little_room")
def test_a_file_that_changes_between_passes_is_refused(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = piles.states_of(files)
    changed = {name: (size + 1, when) for name, (size, when) in before.items()}
    monkeypatch.setattr("himecat.input.validate.states_of", lambda source: changed)
    with pytest.raises(DataError, match=r"has changed while it was read: fit again"):
        fitted(files)


def test_where_there_is_room_nothing_is_left_out(files: list[Path], tmp_path: Path) -> None:
    usual = HiMeCat(sample_taxonomy(), METADATA).fit(files)
    roomy = HiMeCat(sample_taxonomy(), METADATA, memory="4GB").fit(files)
    assert len(roomy.space_.documents) == len(letters())
    assert np.array_equal(usual.space_.words, roomy.space_.words)


@pytest.mark.parametrize("wrong", ["much", "-1", "0", 0, -5, True])
def test_a_budget_is_a_size(wrong: Any) -> None:
    with pytest.raises(UsageError, match="must be a size such as 2GB"):
        memory_budget(wrong)


def test_more_memory_is_room_for_more_documents() -> None:
    rooms = [RoomWithin(size << 30, 400, 2) for size in (1, 2, 4)]
    assert sorted(room.texts() for room in rooms) == [room.texts() for room in rooms]
    found = [room.documents(100, 60_000, 70_000) for room in rooms]
    assert found == sorted(found)
    assert found[0] < found[-1]
    assert RoomWithin(1, 400, 2).documents(10_000, 10**6, 10**6) == fit_memory._FEWEST


def test_reading_elsewhere_leaves_the_folder_alone(files: list[Path]) -> None:
    assert sorted(os.listdir(files[0].parent)) == ["0.jsonl", "1.jsonl"]


@pytest.mark.usefixtures("little_room")
def test_a_correction_keeps_what_all_documents_say_of_the_values(files: list[Path], tmp_path: Path) -> None:
    fitted(files).save(tmp_path / "model")
    model = HiMeCat.load(tmp_path / "model")
    before = model.classifier_.views["metadata"].types["senders"].counts.copy()
    kept = model.space_.taxonomy.leaves[0]
    row = next(iter(model._learned_from.read().corpus.ids))
    model.correct({row: "/".join(model.space_.taxonomy.path(kept))})
    assert np.array_equal(model.classifier_.views["metadata"].types["senders"].counts, before)
