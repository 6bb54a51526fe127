"""The map: points by WebGL, hover, click, zoom, and a lasso that selects for one answer."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from page.browser import Open, api, expect, said, shown


@pytest.fixture
def page(open_page: Open) -> Any:
    page = open_page("#view=map")
    expect(page.locator(".stage[data-points][data-view]")).to_be_visible()
    return page


def view(page: Any) -> tuple[float, float, float]:
    x, y, scale = map(float, page.locator(".stage").get_attribute("data-view").split())
    return x, y, scale


def on_screen(page: Any, row: int) -> tuple[float, float]:
    """Where the point of a document is."""
    body = page.request.get(page.url.split("#")[0] + "api/v1/map").body()
    at_x, at_y = struct.unpack_from("<2f", body, 8 * row)
    x, y, scale = view(page)
    box = page.locator("#map-canvas").bounding_box()
    return box["x"] + box["width"] / 2 + (at_x - x) * scale, box["y"] + box["height"] / 2 - (at_y - y) * scale


def painted(page: Any) -> int:
    """How many of the points' pixels are not empty."""
    count = """(canvas) => {
      const copy = document.createElement("canvas"); copy.width = canvas.width; copy.height = canvas.height;
      const ink = copy.getContext("2d"); ink.drawImage(canvas, 0, 0);
      return ink.getImageData(0, 0, copy.width, copy.height).data.filter((one, at) => at % 4 === 3 && one > 120).length;
    }"""
    return int(page.locator(".stage canvas").first.evaluate(count))


def test_documents_are_painted_and_coloured_by_category_or_confidence(page: Any) -> None:
    assert page.locator(".stage").get_attribute("data-points") == str(api(page, "/model")["documents"])
    assert painted(page) > 3000
    expect(page.locator(".legend button")).to_have_count(5)
    page.get_by_label("Colour by").select_option("confidence")
    expect(page.locator(".legend")).to_contain_text("unsure")
    page.get_by_label("Colour by").select_option("category")
    # The colours of a category go to its children; the rest is faint.
    before = painted(page)
    page.locator(".legend button", has_text="waste").click()
    expect(page.locator(".legend button")).to_have_count(3)
    expect(page.locator("[role=treeitem]", has_text="waste").first).to_have_attribute("aria-selected", "true")
    page.wait_for_function(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
    )
    assert painted(page) < before


def test_hover_tells_and_click_shows_the_document(page: Any) -> None:
    page.mouse.move(*on_screen(page, 0))
    expect(page.locator(".tip")).to_contain_text("%")
    page.mouse.click(*on_screen(page, 0))
    expect(page.locator("#document-pane")).to_have_attribute("data-row", "0")
    assert shown(page) == api(page, "/documents/0")["id"]


def test_wheel_drag_and_keys_zoom_and_pan(page: Any) -> None:
    start = view(page)
    page.locator("#map-canvas").hover()
    page.mouse.wheel(0, -600)
    expect(page.locator(".stage")).not_to_have_attribute("data-view", " ".join(map(str, start)))
    assert view(page)[2] > 1.5 * start[2]
    page.locator("#map-canvas").focus()
    before = view(page)
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "(x) => Number(document.querySelector('.stage').dataset.view.split(' ')[0]) > x", arg=before[0]
    )
    page.get_by_role("button", name="Fit").click()
    page.wait_for_function(
        "(s) => Math.abs(Number(document.querySelector('.stage').dataset.view.split(' ')[2]) - s) < s / 100",
        arg=start[2],
    )


def test_a_lasso_selects_documents_for_one_answer(page: Any) -> None:
    page.get_by_role("button", name="Lasso").click()
    x, y = on_screen(page, 3)
    page.mouse.move(x - 12, y - 12)
    page.mouse.down()
    for dx, dy in ((12, -12), (12, 12), (-12, 12), (-12, -12)):
        page.mouse.move(x + dx, y + dy, steps=3)
    page.mouse.up()
    bar = page.get_by_role("region", name="Selected documents")
    expect(bar).to_contain_text("selected")
    count = int(bar.locator("strong").text_content().split()[0])
    assert count >= 1
    bar.get_by_role("button", name="Move to").click()
    page.keyboard.type("fines")
    page.keyboard.press("Enter")
    said(page, f"Moved {count} document")
    done = api(page, "/documents?state=done&limit=200")["rows"]
    assert len(done) == count
    assert 3 in {one["row"] for one in done}
    assert all(one["answer"]["path"][-1] == "fines" for one in done)
    page.keyboard.press("u")
    said(page, "as before")
    assert api(page, "/documents?state=done&limit=0")["total"] == 0
