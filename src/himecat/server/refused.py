"""Why a request is not answered as it was meant."""

from __future__ import annotations

from typing import Any


class Refused(Exception):
    """An answer with a status of its own, and one sentence."""

    def __init__(self, status: int, sentence: str, **more: Any) -> None:
        super().__init__(sentence)
        self.status, self.more = status, more
