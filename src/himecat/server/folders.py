"""The folders beside a model that is served: the one before, and the next one while it is made."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from himecat.model_folder.files import digest_of
from himecat.runtime.replacing import keep_folder
from himecat.server.store import Store


def digest(folder: str | os.PathLike[str]) -> str:
    """What tells a model from any other."""
    found = digest_of(folder)
    return found.decode() if found.isalnum() else found.hex()


def new_folder(folder: Path) -> Path:
    """Where a model is written before it takes the place of the one that is served."""
    return folder.with_name(folder.name + ".new")


def folder_before(folder: Path) -> Path:
    """Where the model before the one that is served is kept."""
    return folder.with_name(folder.name + ".before")


def recover(folder: Path, store: Store) -> None:
    """Finish what a server began that was ended while it replaced a model, or forget it."""
    new, before = new_folder(folder), folder_before(folder)
    if not new.is_dir():
        return
    wanted = store.fact("replacing")
    if wanted is not None and wanted == digest(folder):
        keep_folder(new, before)
    elif wanted is not None and wanted == digest(new) and not before.is_dir():
        os.rename(new, before)  # on the way back
    else:
        shutil.rmtree(new, ignore_errors=True)
    store.set_facts({"replacing": None})
