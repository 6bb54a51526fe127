"""Fitted models in folders and back; folders of each kind are kept to be loaded for ever.

`python tests/test_model_folder.py FOLDER` shows how the kept models were made: it writes another one like the
newest. `model-v1` was made by the first release, `model-v2` with the default that came after it, `model-v3` when
topics, biases and the confidence of the likeliest path were added to that, `model-v4` when every part of a model
came to keep its own state, `model-v5` when model.json came to carry a digest of itself,
`model-v6` when the weights of opinions came to be learned, `model-v7` when documents came to vote on each other and
trees to be changed, `model-v8` when the first words of a text came to count more.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from estimators import estimator
from himecat import Default, HiMeCat
from himecat.classifier.calibration import DEFAULT_INVERSE_TEMPERATURE
from himecat.classifier.fit import DefaultClassifier
from himecat.errors import ModelFolderError, OutputError
from himecat.model_folder.files import DIGEST_SINCE, HEADER_KEYS, VERSION, read_model, write_model
from himecat.paper.topdown import TopDownClassifier

FIXTURES = Path(__file__).parent / "fixtures"
KEPT = FIXTURES / "model-v1"
SECOND = FIXTURES / "model-v2"
THIRD = FIXTURES / "model-v3"
FOURTH = FIXTURES / "model-v4"
FIFTH = FIXTURES / "model-v5"
SIXTH = FIXTURES / "model-v6"
SEVENTH = FIXTURES / "model-v7"
NEWEST = FIXTURES / "model-v8"
ALL_KEPT = [KEPT, SECOND, THIRD, FOURTH, FIFTH, SIXTH, SEVENTH, NEWEST]
TREE = {"animals": {"pets": None, "wild": {"birds": None, "fish": None}}, "vehicles": None}
TEXTS = {
    "pets": "the cat and the dog sleep in the warm house of the family",
    "birds": "a hawk and an owl fly over the dark forest at night",
    "fish": "the trout and the pike swim in the cold river at night",
    "vehicles": "the car and the truck stop on the road in front of the house",
}
AUTHORS = {"pets": "ann", "birds": "bob", "fish": "bob", "vehicles": "eve"}
NEW = [
    {"text": "a dog and a cat sleep in the warm house", "by": "ann"},
    {"text": "an owl at night, a hawk"},
    {"text": "pike", "by": ["bob", "somebody else"]},
    {"text": "a truck on the road, a car in front of it"},
    {"text": "quite another subject"},
]

Document = dict[str, Any]
Arrays = dict[str, npt.NDArray[Any]]
Contents = dict[Path, tuple[Document, Arrays]]


def training_documents(n: int = 48, labelled: int = 12) -> list[Document]:
    """Six words of a leaf's text at a time; of every leaf the first few documents are labelled."""
    rng = np.random.default_rng(0)
    documents: list[Document] = []
    for row in range(n):
        leaf = list(TEXTS)[row % 4]
        words = rng.permutation(TEXTS[leaf].split())[:6]
        documents.append({"text": " ".join(words), "labels": leaf if row < labelled else None})
        if row % 3:
            documents[-1]["by"] = [AUTHORS[leaf]]
    return documents


def titled_documents() -> list[Document]:
    """Texts that begin with words of their leaf, and go on with fewer of them; enough to learn from that."""
    rng = np.random.default_rng(1)
    everything = " ".join(TEXTS.values()).split()
    return [
        one
        | {"text": " ".join([one["text"]] * 2 + [*rng.choice([*one["text"].split() * 6, *everything], 40)])}
        for one in training_documents(128, labelled=32)
    ]


def small_model(**options: Any) -> HiMeCat:
    return estimator(
        **{
            "taxonomy": TREE,
            "metadata": ["by"],
            "dimension": 8,
            "min_count": 1,
            "space": "sampled",
            "classifier": "kim-cnn",
            "samples": 300_000,
            "rate": 0.04,
            "beta": 20,
            "neighbours": 6,
            "concentration": 150.0,
            "epochs": 20,
            "batch_size": 16,
            "min_steps": 0,
            "filter_widths": (3, 1, 2),
            "filter_maps": 4,
            "hidden": 5,
            "random_state": 1,
            "threads": 1,
        }
        | options
    )


def default_model(**options: Any) -> HiMeCat:
    given = {"taxonomy": TREE, "metadata": ["by"], "dimension": 8, "min_count": 1, "random_state": 1}
    return estimator(**given | {"threads": 1} | options)


def write_fixture(folder: Path) -> None:
    """Make the kept folder and, beside it, what it should answer.

    Only a new version of the folder's format is a reason to call this, with a folder of that version; the old
    ones stay as they are, because people have models like them.
    """
    model = default_model().fit(titled_documents())
    model.save(folder, corpus=False)
    answers = {
        "documents": NEW,
        "paths": model.predict(NEW, as_tuples=True),
        "probabilities": model.predict_proba(NEW).tolist(),
        "vectors": model.transform(NEW).tolist(),
    }
    folder.with_name(f"{folder.name}-expected.json").write_text(json.dumps(answers, indent=1) + "\n")


# -- the kept folder -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", ALL_KEPT, ids=lambda kept: kept.name)
def test_a_kept_model_still_answers_as_it_did(kept: Path) -> None:
    expected = json.loads(kept.with_name(f"{kept.name}-expected.json").read_text())
    model = HiMeCat.load(kept)
    np.testing.assert_allclose(
        model.predict_proba(expected["documents"]), expected["probabilities"], atol=1e-5
    )
    np.testing.assert_allclose(model.transform(expected["documents"]), expected["vectors"], atol=1e-5)
    assert [list(path) for path in model.predict(expected["documents"], as_tuples=True)] == expected["paths"]
    # It says something: not all documents are at the same place, and most are placed surely.
    assert len({tuple(path) for path in expected["paths"]}) >= 4
    assert np.median(np.max(expected["probabilities"], axis=1)) > 0.6


@pytest.mark.parametrize("kept", ALL_KEPT, ids=lambda kept: kept.name)
def test_a_kept_model_has_all_its_parts(kept: Path) -> None:
    model = HiMeCat.load(kept)
    assert model.taxonomy_.n_leaves == 4
    assert model.method_.dimension == model.space_.dimension == 8
    assert set(model.space_.metadata) == {"by"}
    assert model.explain("pets", top=3)
    assert len(model.synthesize("wild", 4)) == 4
    answers = kept.with_name(f"{kept.name}-expected.json")
    assert sum(file.stat().st_size for file in (*kept.iterdir(), answers)) < 60_000


def test_the_kept_models_are_of_all_kinds() -> None:
    first, second, third, fourth, fifth, sixth, seventh, newest = (HiMeCat.load(kept) for kept in ALL_KEPT)
    assert (first.method_.space, first.method_.classifier) == ("sampled", "kim-cnn")
    assert len(first.history_) > 10
    assert isinstance(first.classifier_, TopDownClassifier)
    for later in (second, third, fourth, fifth, sixth, seventh, newest):
        assert isinstance(later.method_, Default)
        assert later.history_ == []
        assert isinstance(later.classifier_, DefaultClassifier)
        assert later.classifier_.scorer.text_weights.size > 0
        assert later.classifier_.calibration.inverse_temperature != DEFAULT_INVERSE_TEMPERATURE
    assert second.method_.topics == 0
    assert "topics" not in second.classifier_.views.centres
    assert second.classifier_.calibration.bias == second.classifier_.calibration.paths == ()
    for later in (third, fourth, fifth, sixth, seventh, newest):
        assert later.method_.topics > 0
        assert later.classifier_.views["topics"].vectors.size > 0
        assert any(later.classifier_.calibration.bias)
        assert len(later.classifier_.calibration.paths) == 3
    assert isinstance(seventh.classifier_, DefaultClassifier)
    assert isinstance(newest.classifier_, DefaultClassifier)
    assert seventh.classifier_.scorer.votes is not None
    assert seventh.classifier_.views["words"].first_words == ()
    assert max(newest.classifier_.views["words"].first_words) > 1.0


def test_every_version_of_the_format_has_a_kept_model() -> None:
    versions = [json.loads((kept / "model.json").read_text())["version"] for kept in ALL_KEPT]
    assert versions == list(range(1, VERSION + 1))


@pytest.mark.parametrize("kept", ALL_KEPT, ids=lambda kept: kept.name)
def test_a_kept_model_is_written_in_the_newest_format(kept: Path, tmp_path: Path) -> None:
    model = HiMeCat.load(kept)
    model.save(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "model.json").read_text())["version"] == VERSION
    assert HiMeCat.load(tmp_path / "model").predict_proba(NEW).tobytes() == model.predict_proba(NEW).tobytes()


@pytest.mark.parametrize("kept", ALL_KEPT, ids=lambda kept: kept.name)
def test_a_model_without_a_digest_says_so(kept: Path, tmp_path: Path) -> None:
    model = HiMeCat.load(kept)
    version = ALL_KEPT.index(kept) + 1
    expected = (
        []
        if version >= DIGEST_SINCE
        else [
            f"{kept}/model.json: it is of format {version}, in which changes of this file cannot be noticed: save the "
            "model again to add the digest by which they are."
        ]
    )
    assert [str(note) for note in model.problems_.of("note")] == expected
    model.save(tmp_path / "model")
    assert list(HiMeCat.load(tmp_path / "model").problems_) == []


def test_no_flipped_bit_of_the_model_file_goes_unnoticed(tmp_path: Path) -> None:
    shutil.copytree(NEWEST, tmp_path / "model")
    file = tmp_path / "model" / "model.json"
    whole = file.read_bytes()
    # Every bit of the first lines, one in three of the header, and of the rest one in seven.
    head = 8 * whole.index(b'"parameters"')
    for bit in (*range(400), *range(400, head, 3), *range(head, 8 * len(whole), 7)):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        file.write_bytes(changed)
        with pytest.raises(ModelFolderError) as caught:
            HiMeCat.load(tmp_path / "model")
        assert str(caught.value).startswith(str(tmp_path / "model"))
        assert "\n" not in str(caught.value)
    file.write_bytes(whole)
    HiMeCat.load(tmp_path / "model")


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kept", ALL_KEPT, ids=lambda kept: kept.name)
def test_weights_that_are_no_numbers_are_refused_by_name(
    kept: Path, number: float, contents: Contents, tmp_path: Path
) -> None:
    document, arrays = contents[kept]
    for name in [name for name, array in arrays.items() if array.dtype.kind == "f" and array.size]:
        changed = arrays[name].copy()
        changed.flat[-1] = number
        write_as(kept, tmp_path / "model", document, arrays | {name: changed})
        with pytest.raises(ModelFolderError, match=f"the array '{name}' holds numbers that are not finite"):
            HiMeCat.load(tmp_path / "model")
        shutil.rmtree(tmp_path / "model")


# -- there and back ------------------------------------------------------------------------------------


WAYS: dict[str, Callable[[], HiMeCat]] = {
    "default": default_model,
    "default without topics": lambda: default_model(topics=0),
    "default without self-training": lambda: default_model(self_training=0, calibrate=False),
    "sampled mixture": lambda: small_model(classifier="mixture"),
    "spectral mean-logistic": lambda: default_model(classifier="mean-logistic", space="spectral"),
    "kim-cnn": small_model,
    "mean-logistic": lambda: small_model(classifier="mean-logistic"),
}


@pytest.fixture(scope="module", params=WAYS)
def model(request: pytest.FixtureRequest) -> HiMeCat:
    return WAYS[request.param]().fit(training_documents())


def test_a_loaded_model_is_the_same_to_the_bit(model: HiMeCat, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    loaded = HiMeCat.load(tmp_path / "model")
    assert loaded.predict_proba(NEW).tobytes() == model.predict_proba(NEW).tobytes()
    assert loaded.transform(NEW).tobytes() == model.transform(NEW).tobytes()
    assert loaded.predict(NEW, as_tuples=True) == model.predict(NEW, as_tuples=True)
    assert loaded.paths_ == model.paths_
    assert loaded.taxonomy_ == model.taxonomy_
    assert loaded.method_ == model.method_
    assert loaded.explain("wild") == model.explain("wild")
    assert loaded.explain(documents=NEW) == model.explain(documents=NEW)
    assert loaded.synthesize("wild", 3) == model.synthesize("wild", 3)
    assert [done.objective for done in loaded.history_] == [done.objective for done in model.history_]
    assert loaded.space_.documents.shape == (0, 8)
    np.testing.assert_array_equal(loaded.space_.vocabulary.counts, model.space_.vocabulary.counts)


def test_a_loaded_model_saves_the_same_bytes(model: HiMeCat, tmp_path: Path) -> None:
    model.save(tmp_path / "one")
    HiMeCat.load(tmp_path / "one").save(tmp_path / "two")
    for name in ("model.json", "weights.safetensors"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_loaded_model_that_is_fitted_again_is_fitted_as_it_was(tmp_path: Path) -> None:
    options = {"classifier": "mean-logistic", "samples": 2_000, "beta": 7}
    model = small_model(**options).fit(training_documents())
    model.save(tmp_path / "model")
    loaded = HiMeCat.load(tmp_path / "model")
    again = loaded.set_params(threads=1).fit(training_documents())
    assert again.method_ == model.method_
    assert again.predict_proba(NEW).tobytes() == model.predict_proba(NEW).tobytes()


def test_the_arguments_that_matter_for_new_documents_are_kept(tmp_path: Path) -> None:
    documents = [
        {"body": d["text"], "is": d["labels"], "by": d.get("by"), "x": "y"} for d in training_documents()
    ]
    model = small_model(
        classifier="mean-logistic",
        samples=2_000,
        metadata=("by", "x"),
        ignore_metadata={"x"},
        text=["body"],
        label_field="is",
        id_field="key",
        min_confidence=np.float64(0.5),
        random_state=np.int64(4),
    ).fit(documents)
    model.save(tmp_path / "model")
    loaded = HiMeCat.load(tmp_path / "model")
    for name in ("metadata", "ignore_metadata", "text"):
        assert list(getattr(loaded, name)) == list(getattr(model, name))
    for name in ("label_field", "id_field", "min_confidence", "random_state", "preset"):
        assert getattr(loaded, name) == getattr(model, name)
    new = [{"key": f"k{row}", "body": document["text"]} for row, document in enumerate(NEW)]
    assert loaded.predict(new, as_tuples=True) == model.predict(new, as_tuples=True)


def test_an_existing_folder_is_only_replaced_on_request(model: HiMeCat, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    with pytest.raises(OutputError):
        model.save(tmp_path / "model")
    model.save(tmp_path / "model", overwrite=True)
    assert HiMeCat.load(tmp_path / "model").predict(NEW, as_tuples=True) == model.predict(NEW, as_tuples=True)


# -- folders that do not fit together ------------------------------------------------------------------

Damage = Callable[[Document, Arrays], object]


def cut(document: Document, key: str) -> None:
    document[key] = document[key][:-1]


DAMAGES: dict[str, tuple[Damage, str]] = {
    "trimmed vocabulary": (lambda d, a: cut(d, "vocabulary"), "'words' should hold"),
    "fewer word vectors": (lambda d, a: a.update(words=a["words"][:-1]), "'words' should hold"),
    "flat word vectors": (
        lambda d, a: a.update(words=a["words"].ravel()),
        "does not fit weights.safetensors",
    ),
    "other precision": (lambda d, a: a.update(words=a["words"].astype(np.float64)), "x 8 float64"),
    "fewer labels": (
        lambda d, a: a.update(labels=a["labels"][:-1]),
        "'labels' should hold 7 x 8 float32, not 6 x 8",
    ),
    "other dimension": (lambda d, a: a.update(labels=a["labels"][:, :5]), "'labels' should hold 7 x 8"),
    "fewer counts": (lambda d, a: a.update(word_counts=a["word_counts"][1:]), "'word_counts' should hold"),
    "fewer values": (lambda d, a: cut(d["metadata"], "by"), "'metadata/by' should hold 2 x 8"),
    "no vectors of a type": (lambda d, a: a.pop("metadata/by"), "metadata/by"),
    "no words": (lambda d, a: a.pop("words"), "'words'"),
    "no vocabulary": (lambda d, a: d.pop("vocabulary"), "'vocabulary' is missing"),
    "no settings": (lambda d, a: d.pop("settings"), "'settings' is missing"),
    "a tokenizer from the future": (
        lambda d, a: d.update(tokenizer="words-9"),
        "does not have the tokenizer rules 'words-9'",
    ),
    "unknown classifier": (
        lambda d, a: d["classifiers"][0].update(name="oracle"),
        "There is no classifier 'oracle'",
    ),
    "a classifier less": (lambda d, a: cut(d, "classifiers"), "the classifiers do not stand at the nodes"),
    "a classifier elsewhere": (lambda d, a: d["classifiers"][0].update(node=2), "'2/"),
    "no weights": (lambda d, a: a.pop("classifier/0/filters"), "'0/filters'"),
    "weights of another shape": (
        lambda d, a: a.update({"classifier/0/dense": a["classifier/0/dense"][1:]}),
        "'dense' should have the shape (12, 5)",
    ),
    "one child too many": (
        lambda d, a: a.update(
            {
                f"classifier/0/{name}": np.repeat(a[f"classifier/0/{name}"], 2, axis=-1)
                for name in ("output", "output_bias")
            }
        ),
        "the classifier at 'ROOT' is not made for 2 children",
    ),
    "a node before its parent": (
        lambda d, a: d["taxonomy"]["parents"].__setitem__(1, 6),
        "comes before its parent",
    ),
    "a tree of another kind": (lambda d, a: d.update(taxonomy=[]), "does not fit"),
    "an unknown setting": (lambda d, a: d["settings"].update(magic=1), "magic"),
    "an unknown argument": (lambda d, a: d["parameters"].update(magic=1), "magic"),
    "metadata of another kind": (lambda d, a: d.update(metadata=["by"]), "does not fit"),
    "a broken history": (lambda d, a: d["history"][0].pop("pairs"), "'pairs'"),
}


FUSED_DAMAGES: dict[str, tuple[Damage, str]] = {
    "no part": (lambda d, a: d.pop("fused"), "the classifiers do not stand at the nodes"),
    "part of another kind": (lambda d, a: d.update(fused=[1]), "does not fit"),
    "part of nothing": (lambda d, a: d.update(fused=None), "does not fit"),
    "no scales": (lambda d, a: d["fused"].pop("scales"), "'scales'"),
    "two scales": (lambda d, a: cut(d["fused"], "scales"), "does not fit"),
    "a scale that is a word": (lambda d, a: d["fused"].update(scales=[1, 2, "three"]), "does not fit"),
    "sharpness of nothing": (lambda d, a: d["fused"].update(sharpness=None), "does not fit"),
    "concentration that is a word": (lambda d, a: d["fused"].update(concentration="high"), "does not fit"),
    "a level less": (lambda d, a: cut(d["fused"], "levels"), "the tree has 3 levels, and 2 are calibrated"),
    "an odd level": (lambda d, a: d["fused"]["levels"].__setitem__(0, [1.0]), "does not fit"),
    "a bias less": (lambda d, a: cut(d["fused"], "bias"), "'bias' should hold 4 numbers"),
    "a bias that is a word": (lambda d, a: d["fused"]["bias"].__setitem__(0, "none"), "does not fit"),
    "biases of nothing": (lambda d, a: d["fused"].update(bias=None), "does not fit"),
    "a confidence less": (
        lambda d, a: cut(d["fused"], "surest"),
        "'paths' should hold a slope and an offset for each of 3 levels",
    ),
    "an odd confidence": (lambda d, a: d["fused"]["surest"].__setitem__(0, [1.0]), "does not fit"),
    "no topics beside their centre": (lambda d, a: a.pop("fused/topics"), "topic"),
    "topics without their centre": (lambda d, a: a.pop("fused/topic_centre"), "topic_centre"),
    "fewer topics": (
        lambda d, a: a.update({"fused/topics": a["fused/topics"][:, :-1]}),
        "'topics/centre' should hold",
    ),
    "an unknown type": (lambda d, a: d["fused"]["trust"].update(venue=1.0), "trust/venue"),
    "trust that is a word": (lambda d, a: d["fused"]["trust"].update(by="much"), "does not fit"),
    "no sums": (lambda d, a: a.pop("fused/trust/by/sums"), "trust/by/sums"),
    "no prior": (lambda d, a: a.pop("fused/log_prior"), "log_prior"),
    "a value less": (
        lambda d, a: [
            a.update({f"fused/trust/by/{name}": a[f"fused/trust/by/{name}"][:-1]})
            for name in ("likeness", "counts", "rows", "rarity")
        ],
        "does not fit",
    ),
    **{
        f"shorter {name}": (
            lambda d, a, name=name: a.update({f"fused/{name}": a[f"fused/{name}"][:-1]}),  # type: ignore[misc]
            "does not fit",
        )
        for name in (
            "word_weights",
            "word_rarity",
            "centre",
            "topics",
            "leaf_directions",
            "log_prior",
            "text_weights",
            "feature_weights",
            "trust/by/likeness",
            "trust/by/counts",
            "trust/by/rows",
            "trust/by/sums",
        )
    },
}


PART_DAMAGES: dict[str, tuple[Damage, str]] = {
    **{
        f"no {key}": (lambda d, a, key=key: d.pop(key), f"'{key}' is missing")
        for key in ("method", "classifier")
    },  # type: ignore[misc]
    "a method from the future": (lambda d, a: d["method"].update(name="magic"), "magic"),
    "a value that a method does not have": (lambda d, a: d["method"]["values"].update(magic=1), "magic"),
    "a value out of range": (
        lambda d, a: d["method"]["values"].update(em_rounds=-1),
        "em_rounds must be at least 0",
    ),
    "an argument from the future": (lambda d, a: d["parameters"].update(magic=1), "'magic'"),
    "a classifier from the future": (
        lambda d, a: d["classifier"].update(name="oracle"),
        "cannot be used: This himecat does not have the classifier 'oracle'",
    ),
    "a tokenizer from the future": (
        lambda d, a: d["tokenizer"]["state"].update(rules="words-9"),
        "does not have the tokenizer rules 'words-9'",
    ),
    "a tokenizer of somebody's own": (lambda d, a: d["tokenizer"].update(name="syllables"), "'syllables'"),
    "a view of somebody's own": (
        lambda d, a: d["classifier"]["settings"]["views"].update(table={"weight": None, "settings": {}}),
        "There is no view 'table': register its class with himecat.register_view first",
    ),
    "no state of a part": (lambda d, a: d["classifier"]["settings"].pop("scorer"), "'scorer'"),
    "a part of another kind": (lambda d, a: d["classifier"].update(settings=[1]), "does not fit"),
    "other words": (lambda d, a: cut(d, "vocabulary"), "'words' should hold"),
    "first words that count nothing": (
        lambda d, a: d["classifier"]["settings"]["views"]["words"]["settings"].update(first_words=[0.0]),
        "'first_words' holds what is no weight",
    ),
}


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    found = {}
    for kept in ALL_KEPT:
        document, arrays = read_model(kept)
        for key in HEADER_KEYS:
            document.pop(key, None)
        place = tmp_path_factory.mktemp("whole") / "model"
        write_as(kept, place, document, arrays)
        # Written again without damage it can be read: what fails below fails for the damage.
        HiMeCat.load(place)
        found[kept] = document, arrays
    return found


def write_as(kept: Path, place: Path, document: Document, arrays: Arrays) -> None:
    """Write a folder of the same version as a kept one, or of the newest where that has a digest."""
    write_model(place, document, arrays)
    version = ALL_KEPT.index(kept) + 1
    if version < DIGEST_SINCE:
        lines = (place / "model.json").read_text().split("\n")
        older = [line for line in lines if not line.startswith('"digest"')]
        text = "\n".join(older).replace(f'"version": {VERSION}', f'"version": {version}', 1)
        (place / "model.json").write_text(text)


BY_VERSION = {KEPT: DAMAGES, THIRD: FUSED_DAMAGES, FOURTH: PART_DAMAGES, NEWEST: PART_DAMAGES}


@pytest.mark.parametrize(
    ("kept", "kind"),
    [(kept, kind) for kept, damages in BY_VERSION.items() for kind in damages],
    ids=lambda part: part if isinstance(part, str) else part.name,
)
def test_damage_is_told_in_one_sentence(kept: Path, kind: str, contents: Contents, tmp_path: Path) -> None:
    document, arrays = deepcopy(contents[kept][0]), dict(contents[kept][1])
    damage, said = BY_VERSION[kept][kind]
    damage(document, arrays)
    write_as(kept, tmp_path / "model", document, arrays)
    with pytest.raises(ModelFolderError) as caught:
        HiMeCat.load(tmp_path / "model")
    sentence = str(caught.value)
    assert said in sentence
    assert sentence.startswith(str(tmp_path / "model"))
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert caught.value.exit_code == 2


if __name__ == "__main__":
    write_fixture(Path(sys.argv[1]))
