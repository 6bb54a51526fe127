"""How it looks: every view is accessible in light and dark and fits wide and narrow windows; screenshots for the docs.

`HIMECAT_SCREENSHOTS=docs/_static` has the screenshots written where the documentation shows them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from page.browser import ROOT, Open, expect, is_accessible, shoot, shown

SHOTS = ("documents", "dark", "map", "unsorted", "move", "narrow", "narrow-document")


def to_documents(page: Any) -> None:
    page.locator("[role=treeitem]", has_text="leisure").click()
    expect(page.locator("#list-title")).to_have_text("leisure")
    expect(page.locator("mark").first).to_be_visible()


def to_map(page: Any) -> None:
    page.get_by_role("link", name="Map").click()
    expect(page.locator("[data-points]")).to_be_visible()


def to_unsorted(page: Any) -> None:
    page.get_by_role("link", name="Unsorted").click()
    expect(page.locator(".proposals > *").first).not_to_contain_text("Looking")


def to_move(page: Any) -> None:
    page.keyboard.press("m")
    page.keyboard.type("re")


def to_help(page: Any) -> None:
    page.keyboard.press("?")


def to_accepting(page: Any) -> None:
    page.get_by_role("button", name="Accept sure").click()
    expect(page.locator(".figures b").first).to_be_visible()


def to_splitting(page: Any) -> None:
    page.locator("[role=treeitem]", has_text="lighting").click()
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_role("menuitem", name="Split").click()


def to_menu(page: Any) -> None:
    page.get_by_role("button", name="Data").click()


def to_export(page: Any) -> None:
    to_menu(page)
    page.get_by_role("menuitem", name="Export").click()


def to_selection(page: Any) -> None:
    page.locator("#list").focus()
    page.keyboard.press("x")


def to_nothing(page: Any) -> None:
    page.locator("#query").fill("zzzzzz")
    expect(page.locator(".message", has_text="No document is like that")).to_be_visible()


VIEWS: dict[str, Callable[[Any], None]] = {
    "documents": to_documents,
    "map": to_map,
    "unsorted": to_unsorted,
    "move": to_move,
    "help": to_help,
    "accepting": to_accepting,
    "splitting": to_splitting,
    "menu": to_menu,
    "export": to_export,
    "selection": to_selection,
    "nothing": to_nothing,
}


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_accessible_in_both_themes(open_page: Open, view: str, tmp_path: Path) -> None:
    page = open_page()
    VIEWS[view](page)
    is_accessible(page)
    # Proposals are shown where there are some.
    if view in SHOTS and view != "unsorted":
        shoot(page, view, tmp_path)
    page.emulate_media(color_scheme="dark")
    is_accessible(page, runOnly=["color-contrast"])
    if view == "documents":
        shoot(page, "dark", tmp_path)


def test_the_switch_overrides_the_systems_theme_and_is_remembered(open_page: Open) -> None:
    page = open_page(scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.get_by_role("button", name="Theme: auto").click()
    assert page.evaluate(ground) != dark
    page.reload()
    expect(page.get_by_role("button", name="Theme: light")).to_be_visible()
    assert page.evaluate(ground) != dark


def test_a_narrow_window_has_the_tree_and_the_document_as_drawers(open_page: Open, tmp_path: Path) -> None:
    page = open_page(width=390, height=780)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    expect(page.locator("#tree-pane")).to_be_hidden()
    assert page.locator("#list .document").count() < 40
    is_accessible(page)
    shoot(page, "narrow", tmp_path)
    page.get_by_role("button", name="Show the categories").click()
    expect(page.locator("#tree-pane")).to_be_visible()
    # The focus is in the drawer and stays there.
    expect(page.locator("#tree-search")).to_be_focused()
    assert page.locator("#middle").evaluate("(one) => one.inert")
    is_accessible(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Show the categories")).to_be_focused()
    page.locator("#row-2").click()
    expect(page.locator("#document-pane")).to_be_visible()
    expect(page.locator("#document-pane .runner").first).to_be_visible()
    is_accessible(page)
    shoot(page, "narrow-document", tmp_path)
    name = shown(page)
    page.locator("#document-pane").get_by_role("button", name="Skip").click()
    expect(page.locator("#document-pane h2.id")).not_to_have_attribute("title", name)
    page.get_by_role("button", name="Back to the list").click()
    expect(page.locator("#document-pane")).to_be_hidden()
    page.keyboard.press("u")


@pytest.mark.parametrize("view", ["map", "unsorted", "accepting", "help"])
def test_nothing_is_wider_than_a_narrow_window(open_page: Open, view: str) -> None:
    page = open_page(width=390, height=780)
    if view == "help":
        to_menu(page)
        page.get_by_role("menuitem", name="Keys").click()
    else:
        VIEWS[view](page)
    assert page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)") == 390
    wide = """(all) => all.filter((one) => one.offsetWidth && one.getBoundingClientRect().right > 391
      && getComputedStyle(one).visibility == "visible").map((one) => one.outerHTML.slice(0, 80))"""
    assert (
        page.locator("header.top *, #middle > section:not([hidden]) > *, dialog *").evaluate_all(wide) == []
    )
    is_accessible(page)


def test_the_documentation_has_the_pictures() -> None:
    text = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    for name in SHOTS:
        file = ROOT / "docs" / "_static" / f"page-{name}.png"
        assert file.exists(), name
        assert file.stat().st_size < 150_000
        assert file.name in text
