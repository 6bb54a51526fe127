"""Learning from answers, and changing the tree."""

from __future__ import annotations

from typing import Any

import pytest

from page.browser import Open, api, expect, said, shown

OWN_SERVER = True


@pytest.fixture
def page(open_page: Open) -> Any:
    """A page that may be told that something cannot be done."""
    return open_page(expect="409|422|400")


def edit(page: Any, category: str, item: str) -> Any:
    """Open the dialog of a change, by the menu of a category."""
    page.keyboard.press("f")
    page.keyboard.press("Control+a")
    page.keyboard.type(category)
    page.keyboard.press("Enter")
    expect(page.locator("#list-title b")).to_have_text(category.split()[-1])
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_role("menuitem", name=item).click()
    return page.get_by_role("dialog")


def names(page: Any) -> list[str]:
    return [one["name"] for one in api(page, "/tree")["nodes"]]


def test_the_model_learns_says_what_moved_and_goes_back(page: Any) -> None:
    before = api(page, "/model")
    for key in ("1", "1", "2", "a", "a"):
        name = shown(page)
        page.keyboard.press(key)
        expect(page.locator("#document-pane h2.id")).not_to_have_attribute("title", name)
    page.get_by_role("button", name="Learn").click()
    expect(page.get_by_role("region", name="Learning")).to_be_visible()
    expect(page.get_by_role("progressbar", name="Learning")).to_be_visible()
    dialog = page.get_by_role("dialog", name="What the model learned")
    expect(dialog).to_be_visible(timeout=60_000)
    result = api(page, "/jobs")[0]["result"]
    expect(dialog.locator(".lead")).to_contain_text(str(result["moved"]))
    expect(dialog.locator("table").first.locator("tbody tr")).to_have_count(len(result["accuracy"]))
    assert dialog.locator("table").last.locator("tbody tr").count() == min(200, len(result["moves"]))
    assert api(page, "/model")["model_version"] == before["model_version"] + 1
    dialog.get_by_role("button", name="Go back").click()
    said(page, "The model before is back")
    # The answers are still there.
    assert api(page, "/model")["answered"] == before["answered"] + 5


def test_learning_is_cancelled(page: Any) -> None:
    page.keyboard.press("a")
    said(page, "Accepted")
    version = api(page, "/model")["model_version"]
    page.keyboard.press("l")
    page.get_by_role("region", name="Learning").get_by_role("button", name="Cancel").click()
    said(page, "cancelled")
    expect(page.get_by_role("button", name="Learn")).to_be_enabled()
    assert api(page, "/jobs")[0]["state"] == "cancelled"
    assert api(page, "/model")["model_version"] == version


def test_what_cannot_be_done_is_said(open_page: Open) -> None:
    page = open_page(expect="409")
    page.route(
        "**/api/v1/jobs",
        lambda route: route.fulfill(status=409, json={"error": "There is no answer to learn from yet."}),
    )
    page.keyboard.press("l")
    expect(page.locator("#status.failed")).to_contain_text("no answer to learn from")


def test_a_category_is_renamed_after_it_is_said_what_happens(page: Any) -> None:
    dialog = edit(page, "pool", "Rename")
    go = dialog.get_by_role("button", name="Rename")
    expect(go).to_be_disabled()
    # A name that is taken.
    dialog.get_by_label("New name").fill("library")
    expect(dialog.locator(".said.bad")).to_contain_text("library")
    dialog.get_by_label("New name").fill("swimming")
    expect(dialog.locator(".said")).to_contain_text("swimming")
    expect(dialog.locator(".said")).to_contain_text("No refit is needed")
    assert "pool" in names(page)
    go.click()
    said(page, "The tree is changed")
    assert "pool" not in names(page)
    # The list stays at the category.
    expect(page.locator("#list-title b")).to_have_text("swimming")
    assert api(page, "/documents?node=1&limit=1")["rows"]


@pytest.mark.parametrize(
    ("category", "item", "pick", "words"),
    [
        ("lighting", "Move", "waste", "moved"),
        ("lighting", "Merge", "fly-tipping", "fly-tipping"),
        ("lighting", "Delete", "", "deleted"),
    ],
)
def test_what_moving_merging_and_deleting_do_is_said(
    page: Any, category: str, item: str, pick: str, words: str
) -> None:
    dialog = edit(page, category, item)
    if pick:
        dialog.get_by_role("button", name="Choose").click()
        page.keyboard.type(pick)
        page.keyboard.press("Enter")
    expect(dialog.locator(".said")).to_contain_text(words)
    expect(dialog.get_by_role("button", name=item)).to_be_enabled()
    before = names(page)
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    assert names(page) == before


def test_a_category_is_split_by_words_of_its_documents(page: Any) -> None:
    dialog = edit(page, "fly-tipping", "Split")
    for place, (name, text) in enumerate((("mattresses", "mattress"), ("rubble", "rubble")), start=1):
        dialog.get_by_label(f"Name of part {place}").fill(name)
        dialog.get_by_label(f"Words of part {place}").fill(text)
    expect(dialog.locator(".found").first).to_contain_text("example")
    expect(dialog.locator(".said")).to_contain_text("mattresses")
    dialog.get_by_role("button", name="Split").click()
    page.get_by_role("dialog", name="What the new tree changed").get_by_role("button", name="Keep").click(
        timeout=60_000
    )
    assert {"mattresses", "rubble"} <= set(names(page))
