"""The columns of a corpus while its documents are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from himecat.input.columns import OpenColumns
from himecat.input.documents import Document
from himecat.input.metadata_columns import ruled_rows
from himecat.input.problems import Problems
from himecat.input.rules import Rule
from himecat.input.token_ids import IdRows, TokenRows, WordIds


class CorpusRows:
    """The columns of a corpus while its documents are read; no text is kept longer than its words need."""

    def __init__(
        self,
        words: WordIds,
        metadata: Mapping[str, IdRows],
        columns: OpenColumns,
        max_tokens: int | None,
        threads: int | None,
        rules: Mapping[str, Rule],
        problems: Problems,
    ) -> None:
        self._rules, self._problems = rules, problems
        self.ids: list[str] = []
        self.tokens = TokenRows(words, max_tokens, threads)
        self.metadata = metadata
        self.columns = columns

    def extend(self, documents: Sequence[Document]) -> None:
        """Add the next documents."""
        self.ids += [document.id for document in documents]
        self.tokens.extend([document.text for document in documents])
        for kind, rows in self.metadata.items():
            if kind in self._rules:
                rows.extend(ruled_rows(kind, self._rules[kind], documents, self._problems))
            else:
                rows.extend([document.metadata.get(kind, ()) for document in documents])
        self.columns.extend(documents)
