"""The script that makes the sample corpus."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import make_sample
from sample_letters import make_letters
from sample_letters.desk import CHANGES_OF_SUBJECT, CLOSINGS, GENERIC_WISHES, MIDDLES, OPENINGS, TOWN
from sample_letters.people import ROUTINE_TAGS, SETTING
from sample_letters.themes import THEMES

Document = dict[str, Any]
SCRIPTS = Path(make_sample.__file__).parent


def digest(documents: Sequence[Document]) -> str:
    return hashlib.sha256(json.dumps(documents, ensure_ascii=False).encode()).hexdigest()


@pytest.fixture(scope="module")
def letters() -> list[Document]:
    return make_letters()


# --- the same letters everywhere


def test_it_makes_the_very_files_of_the_package(tmp_path: Path) -> None:
    make_sample.main(tmp_path)
    for file in tmp_path.iterdir():
        made, kept = file.read_bytes(), (make_sample.SAMPLE / file.name).read_bytes()
        if file.suffix == ".gz":
            assert gzip.decompress(made) == gzip.decompress(kept)
            # Other libraries than zlib itself pack the same bytes in another way.
            if "ng" in zlib.ZLIB_RUNTIME_VERSION:
                continue
        assert made == kept
    assert {file.name for file in tmp_path.iterdir()} == {
        file.name for file in make_sample.SAMPLE.iterdir() if file.suffix in (".gz", ".yaml", ".txt")
    }


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_sample_does_not_depend_on_string_hashing(hash_seed: str) -> None:
    code = (
        "import hashlib, json; from sample_letters import make_letters; "
        "print(hashlib.sha256(json.dumps(make_letters(300, 5), ensure_ascii=False).encode()).hexdigest())"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(SCRIPTS)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == digest(make_letters(300, 5))


def test_seed_changes_the_letters_but_not_how_many_each_leaf_has(letters: list[Document]) -> None:
    other = make_letters(seed=1)
    assert {letter["text"] for letter in letters}.isdisjoint(letter["text"] for letter in other)
    assert Counter(tuple(letter["labels"]) for letter in letters) == Counter(
        tuple(letter["labels"]) for letter in other
    )


# --- the letters


@pytest.mark.parametrize("n_documents", [22, 23, 176, 300, 2500])
def test_any_size_covers_every_leaf(n_documents: int) -> None:
    counts = Counter(tuple(letter["labels"]) for letter in make_letters(n_documents, seed=3))
    assert sum(counts.values()) == n_documents
    assert len(counts) == 22
    assert min(counts.values()) >= min(8, n_documents // 22)


@pytest.mark.parametrize("seed", [0, 7])
def test_text_is_readable(seed: int) -> None:
    for letter in make_letters(seed=seed):
        text = letter["text"]
        assert text == " ".join(text.split())
        assert not re.search(r"[{}<>|]", text), text
        assert not re.search(r"\b[Aa] [aeio]|\b[Aa]n [^aeiouh]", text), text
        assert not re.search(r"\b(\w+) \1\b|[,.?!][,.?!]| [,.?!]", text), text
        sentences = re.split(r"(?<=[.?!]) ", text)
        assert 2 <= len(sentences) <= 6, text
        assert len(set(sentences)) == len(sentences), text
        assert all(re.fullmatch(r"[A-Z].*[.?!]", sentence) for sentence in sentences), text
        assert 30 <= len(text.split()) <= 90, text


def all_templates() -> list[str]:
    nodes = dict.fromkeys(node for line in TOWN.lines() for node in line)
    own = [each for node in nodes for each in (*node.fact_templates, *node.wish_templates)]
    kinds = [each for theme in THEMES.values() for each in theme]
    return [*own, *kinds, *OPENINGS, *MIDDLES, *GENERIC_WISHES, *CLOSINGS, *CHANGES_OF_SUBJECT]


def test_templates_are_well_formed() -> None:
    templates = all_templates()
    assert len(set(templates)) == len(templates)
    slots = {*SETTING, "street"}
    for template in templates:
        flat = re.sub(r"\{[^{}]*\}", "", template)
        assert not re.search(r"[{}|]", flat), template
        assert template[-1] in ".?", template
        assert set(re.findall(r"<([^>]*)>", template)) <= slots, template
        for choice in re.findall(r"\{([^{}]*)\}", template):
            options = choice.split("|")
            assert len(set(options)) == len(options), template
            assert all(option == option.strip() != "" for option in options), template


def sentence_pattern(template: str) -> str:
    """A pattern for what a template can say."""

    def literal(part: str) -> str:
        return re.sub(r"<[a-z]+>", r"[^.?!]+", re.escape(part))

    parts = re.split(r"\{([^{}]*)\}", template)
    return "".join(
        f"(?:{'|'.join(map(literal, part.split('|')))})" if place % 2 else literal(part)
        for place, part in enumerate(parts)
    )


def test_half_of_the_text_does_not_name_the_subject(letters: list[Document]) -> None:
    everywhere = (*OPENINGS, *MIDDLES, *GENERIC_WISHES, *CLOSINGS, *CHANGES_OF_SUBJECT)
    kinds = [each for theme in THEMES.values() for each in theme]
    filler = re.compile("|".join(map(sentence_pattern, everywhere)), re.IGNORECASE)
    of_a_kind = re.compile("|".join(map(sentence_pattern, kinds)), re.IGNORECASE)
    words: Counter[str] = Counter()
    only_filler = 0
    for letter in letters[:400]:
        sentences = re.split(r"(?<=[.?!]) ", letter["text"])
        only_filler += all(filler.fullmatch(sentence) for sentence in sentences)
        for sentence in sentences:
            sort = "filler" if filler.fullmatch(sentence) else "kind" if of_a_kind.fullmatch(sentence) else ""
            words[sort] += len(sentence.split())
    assert 0.3 < words["filler"] / words.total() < 0.5
    assert 0.4 < (words["filler"] + words["kind"]) / words.total() < 0.6
    assert 0.02 < only_filler / 400 < 0.07


def test_siblings_differ_in_their_kind_of_trouble_and_distant_leaves_share_it() -> None:
    lines = [line for line in TOWN.lines() if line[-1].theme]
    assert {line[-1].theme for line in lines} == set(THEMES)
    siblings = [(line[-2].name, line[-1].theme) for line in lines]
    assert len(set(siblings)) == len(siblings)
    for theme in THEMES:
        assert len({line[1].name for line in lines if line[-1].theme == theme}) >= 2


# --- the tags


def test_routine_tags_say_nothing(letters: list[Document]) -> None:
    tagged = [letter for letter in letters if letter["tags"]]
    share = {area.name: [0, 0] for area in TOWN.children}
    for letter in tagged:
        routine = any(tag in ROUTINE_TAGS for tag in letter["tags"])
        share[letter["labels"][0]][0] += routine
        share[letter["labels"][0]][1] += 1
    overall = sum(with_tag for with_tag, _ in share.values()) / len(tagged)
    for with_tag, total in share.values():
        # Three standard errors of a share among so few letters.
        assert with_tag / total == pytest.approx(overall, abs=3 * 0.5 / total**0.5)


# --- what it refuses


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_letters(21), r"n_documents must be a whole number of at least 22.*found 21"),
        (lambda: make_letters(100.5), r"found 100\.5"),
        (lambda: make_letters(seed=None), r"seed must be a whole number, not None"),
    ],
)
def test_bad_arguments_are_named(call: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()
