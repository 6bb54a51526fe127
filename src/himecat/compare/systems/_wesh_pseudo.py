"""Pseudo documents of the categories, from their keywords and a language model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from himecat.compare.systems._language_model import learn_language
from himecat.compare.systems._wesh_settings import WeSHClassSettings
from himecat.compare.systems._wesh_topics import Topic, fit_topic
from himecat.compare.systems.system import Task
from himecat.input.corpus import Ragged
from himecat.input.taxonomy.tree import Taxonomy
from himecat.paper.synthesis import nearest_words
from himecat.runtime.threads import run_parallel

Keywords = Mapping[int, npt.NDArray[np.int64]]


def topics_of(taxonomy: Taxonomy, keywords: Keywords, vectors: npt.NDArray[np.float32]) -> dict[int, Topic]:
    """Fit a topic to every category that has keywords and a sibling to be told from.

    A leaf has one component for its own keywords, an inner category one per child, for those below the child.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("a", "x"), ("a", "y"), ("b",)])
    >>> found = topics_of(tree, {2: np.array([0]), 3: np.array([1]), 4: np.array([2])}, np.eye(3, dtype="f4"))
    >>> {tree.title(node): len(topic.means) for node, topic in found.items()}
    {'a': 2, 'b': 1, 'a/x': 1, 'a/y': 1}
    """

    def below(node: int) -> npt.NDArray[np.int64]:
        found = [keywords[leaf] for leaf in taxonomy.leaves_under(node) if leaf in keywords]
        return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *found]))

    topics = {}
    for node in range(1, len(taxonomy)):
        if len(taxonomy.children[taxonomy.parents[node]]) > 1:
            groups = [below(child) for child in taxonomy.children[node] or (node,)]
            groups = [group for group in groups if len(group)]
            if groups:
                topics[node] = fit_topic(groups, vectors)
    return topics


def make_pseudo_documents(
    task: Task,
    documents: Ragged,
    vectors: npt.NDArray[np.float32],
    keywords: Keywords,
    settings: WeSHClassSettings,
) -> dict[int, Ragged]:
    """Write `beta` documents for every category that has keywords and a sibling.

    A document begins with the word nearest to a vector drawn from the category's topic; the language model goes
    on from there. After `sentence` words it begins again with the same word. Documents are as long as the
    corpus's are on average, but at most `length` words.

    Examples
    --------
    >>> from himecat import Supervision, read_corpus
    >>> corpus = read_corpus(["goal match", "law vote"])
    >>> task = Task(corpus, Taxonomy.from_paths([("a",), ("b",)]), Supervision(np.array([0, 1]), np.array([1, 2])))
    >>> few = WeSHClassSettings(beta=3, language_tokens=0)
    >>> words = np.eye(4, dtype=np.float32)
    >>> made = make_pseudo_documents(task, corpus.tokens, words, {1: np.array([0]), 2: np.array([2])}, few)
    >>> {node: (len(texts), int(texts[0][0])) for node, texts in made.items()}
    {1: (3, 0), 2: (3, 2)}
    """
    topics = topics_of(task.taxonomy, keywords, vectors)
    lengths = documents.lengths[documents.lengths > 0]
    length = int(np.clip(round(lengths.mean()), 1, settings.length))
    sentences = math.ceil(length / settings.sentence)
    sentence = math.ceil(length / sentences)
    with task.progress.stage("Training the language model", total=settings.language_tokens) as stage:
        # A worker of its own keeps PyTorch on one thread: sums are then always taken in the same order. It
        # does so only if PyTorch is there when it starts.
        import torch  # noqa: F401

        [language] = run_parallel(
            [
                lambda: learn_language(
                    documents,
                    vectors,
                    common_words=settings.common_words,
                    tokens=settings.language_tokens,
                    sentence=settings.sentence,
                    seed=task.seed,
                    advance=stage.advance,
                )
            ],
            1,
        )
    with task.progress.stage("Writing pseudo documents", total=len(topics)) as stage:

        def job_for(node: int) -> Callable[[], Ragged]:
            def job() -> Ragged:
                rng = np.random.default_rng([task.seed, node])
                drawn = topics[node].draw(settings.beta, rng)
                starts = nearest_words(drawn, vectors, 1)[0][:, 0]
                texts = language.texts_from(np.repeat(starts, sentences), sentence, int(rng.integers(2**31)))
                rows = texts.reshape(settings.beta, sentences * sentence)[:, :length]
                stage.advance()
                return Ragged(rows.ravel(), np.arange(settings.beta + 1, dtype=np.int64) * length)

            return job

        return dict(zip(topics, run_parallel([job_for(node) for node in topics], task.threads), strict=True))
