"""Unsorted: a category that the tree lacks comes back as a proposal, and becomes one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from page.browser import ENVIRONMENT, SECONDS, Open, Served, api, expect, is_accessible, shoot

HIDDEN = "pool"


@pytest.fixture(scope="module")
def served(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of a model that was never told of the pool."""
    folder = tmp_path_factory.mktemp("unsorted")
    tree = [
        line for line in (sample / "taxonomy.yaml").read_text().splitlines() if line.strip() != f"{HIDDEN}:"
    ]
    (folder / "taxonomy.yaml").write_text("\n".join(tree) + "\n")
    with (folder / "documents.jsonl").open("w", encoding="utf-8") as file:
        for line in (sample / "documents.jsonl").read_text(encoding="utf-8").splitlines():
            document = json.loads(line)
            if HIDDEN in document.get("labels", []):
                document["labels"] = []
            file.write(json.dumps(document) + "\n")
    command = [sys.executable, "-m", "himecat", "fit", str(folder / "documents.jsonl")]
    options = [
        "--taxonomy",
        str(folder / "taxonomy.yaml"),
        "--metadata",
        "senders,tags",
        "-o",
        str(folder / "model"),
    ]
    subprocess.run([*command, *options], check=True, capture_output=True, timeout=SECONDS, env=ENVIRONMENT)
    server = Served(folder / "model", folder / "documents.jsonl")
    server.start()
    yield server
    server.end()


def test_a_group_that_fits_nowhere_becomes_a_category(open_page: Open, tmp_path: Path) -> None:
    page = open_page("#view=unsorted")
    cards = page.locator(".proposal")
    expect(cards.first).to_be_visible(timeout=30_000)
    found = api(page, "/proposals")
    assert cards.count() == len(found)
    # The one with the most letters about swimming.
    swimming = [sum("swim" in word or "pool" in word for word in one["words"]) for one in found]
    assert max(swimming) > 0
    card = cards.nth(swimming.index(max(swimming)))
    expect(card.locator(".sample").first).to_be_visible()
    # A sample is read like any document.
    card.locator(".sample").first.click()
    expect(page.locator("#document-pane .runner").first).to_be_visible()
    is_accessible(page)
    shoot(page, "unsorted", tmp_path)
    card.get_by_role("button", name="Make it a category").click()
    dialog = page.get_by_role("dialog", name="A new category")
    dialog.get_by_label("Name").fill("swimming")
    expect(dialog.locator(".said")).to_contain_text("swimming")
    dialog.get_by_role("button", name="Make it").click()
    result = page.get_by_role("dialog", name="What the new tree changed")
    expect(result).to_be_visible(timeout=60_000)
    result.get_by_role("button", name="Keep").click()
    new = next(one for one in api(page, "/tree")["nodes"] if one["name"] == "swimming")
    assert new["count"] > 20
    page.locator("#tree-search").fill("swimming")
    expect(page.locator("[role=treeitem]:not(.faint)")).to_have_text([re.compile("swimming")])
