"""Answers by keyboard, in whole categories, from two pages at once, and through the end of the server."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from page.browser import Open, Served, api, expect, said, shown


@pytest.fixture
def page(open_page: Open) -> Iterator[Any]:
    """A page whose answers are all taken back at the end."""
    page = open_page(expect="409")
    yield page
    client = page.evaluate("sessionStorage.getItem('himecat-client')")
    address = page.url.split("#")[0] + "api/v1/actions"
    while page.request.post(address, data={"client": client, "kind": "undo"}).ok:
        pass


def tell(page: Any, action: dict[str, Any]) -> None:
    """Somebody else does something."""
    assert page.request.post(page.url.split("#")[0] + "api/v1/actions", data=action).ok


def answer_of(page: Any, name: str) -> Any:
    """What the server keeps of a document."""
    found = api(page, "/documents?state=done&limit=200")["rows"]
    return next((one["answer"] for one in found if one["id"] == name), None)


def test_accept_move_none_skip_and_undo_by_keys(page: Any) -> None:
    names, rows = (
        [],
        {one["id"]: one for one in api(page, "/documents?state=open&sort=useful&limit=10")["rows"]},
    )
    for key, text in (
        ("a", "Accepted"),
        ("2", "Moved"),
        ("n", "none of these"),
        ("s", "Skipped"),
        ("Enter", "Accepted"),
    ):
        names.append(shown(page))
        if key == "Enter":
            page.locator("#list").focus()
        page.keyboard.press(key)
        said(page, text)
        expect(page.locator("#document-pane h2.id")).not_to_have_attribute("title", names[-1])
    runner_up = api(page, f"/documents/{rows[names[1]]['row']}")["alternatives"][1]["path"]
    kinds = [answer_of(page, name) for name in names]
    assert [one["kind"] for one in kinds] == ["accepted", "moved", "none", "skipped", "accepted"]
    assert (kinds[0]["path"], kinds[1]["path"]) == (rows[names[0]]["path"], runner_up)
    expect(page.locator("#list .badge:not(.warn)")).to_have_count(5)
    # The last is undone first, and shown again.
    for name in reversed(names):
        page.keyboard.press("u")
        expect(page.locator("#document-pane h2.id")).to_have_attribute("title", name)
    expect(page.locator("#list .badge:not(.warn)")).to_have_count(0)
    assert api(page, "/documents?state=done&limit=0")["total"] == 0
    page.keyboard.press("u")
    said(page, "nothing to undo")


def test_move_by_typing_a_part_of_the_path(page: Any) -> None:
    name = shown(page)
    page.keyboard.press("m")
    field = page.get_by_role("combobox", name="Category")
    expect(field).to_be_focused()
    # Before anything is typed, the runners-up come first.
    expect(page.locator(".pick").first.locator("kbd")).to_have_text("1")
    page.keyboard.type("waste missed")
    expect(page.locator(".pick")).to_have_count(1)
    page.keyboard.press("Enter")
    said(page, f"Moved {name} to waste › collection › missed-bins")
    assert answer_of(page, name)["path"] == ["waste", "collection", "missed-bins"]
    # Left without an answer, nothing happens.
    page.keyboard.press("m")
    page.keyboard.press("Escape")
    assert api(page, "/documents?state=done&limit=0")["total"] == 1


def test_keys_that_come_faster_than_the_server_answer_one_document_each(page: Any) -> None:
    names = [one["id"] for one in api(page, "/documents?state=open&sort=useful&limit=6")["rows"]]
    for _ in range(6):
        page.keyboard.press("a")
    expect(page.locator("#list .badge.accepted")).to_have_count(6)
    assert {one["id"] for one in api(page, "/documents?state=done")["rows"]} == set(names)


def test_a_list_of_open_documents_loses_none_while_they_are_answered(page: Any) -> None:
    """Pages that are asked for later begin where the list would have gone on."""
    wanted = [one["id"] for one in api(page, "/documents?state=open&sort=useful&limit=130")["rows"]]
    for _ in range(8):
        page.keyboard.press("a")
    expect(page.locator("#list .badge.accepted")).to_have_count(8)
    page.locator("#list").evaluate("(list) => { list.scrollTop = 88 * 118; }")
    for place in (119, 122):
        expect(page.locator(f"#row-{place} .id")).to_have_text(wanted[place])


def test_several_documents_get_one_answer(page: Any) -> None:
    page.locator("#list").focus()
    page.keyboard.press("x")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    bar = page.get_by_role("region", name="Selected documents")
    expect(bar).to_contain_text("3 documents selected")
    bar.get_by_role("button", name="Move to").click()
    page.keyboard.type("pool")
    page.keyboard.press("Enter")
    said(page, "Moved 3 documents to leisure › pool")
    expect(bar).to_be_hidden()
    assert [one["answer"]["path"] for one in api(page, "/documents?state=done")["rows"]] == [
        ["leisure", "pool"]
    ] * 3
    page.keyboard.press("u")
    said(page, "3 documents as before")


def test_sure_documents_of_a_category_are_accepted_after_a_preview(page: Any) -> None:
    page.locator("[role=treeitem]", has_text="waste").first.click()
    page.get_by_role("button", name="Accept sure").click()
    dialog = page.get_by_role("dialog")
    go = dialog.get_by_role("button", name="documents")
    expect(go).to_be_enabled()
    before = go.text_content()
    dialog.get_by_label("At least").fill("0.5")
    expect(go).not_to_have_text(before or "")
    count = int((go.text_content() or "").split()[1])
    assert api(page, "/documents?state=done&limit=0")["total"] == 0
    go.click()
    said(page, f"Accepted {count} documents")
    assert api(page, "/documents?state=done&limit=0")["total"] == count
    page.keyboard.press("u")
    said(page, "Undone")
    assert api(page, "/documents?state=done&limit=0")["total"] == 0


def test_two_pages_follow_each_other_and_do_not_clash(page: Any, open_page: Open) -> None:
    other = open_page(expect="409")
    name = shown(page)
    assert shown(other) == name
    # What the other did not hear of is found out when it answers.
    other.evaluate("window.dispatchEvent(new Event('pagehide'))")
    page.keyboard.press("n")
    said(page, "none of these")
    other.keyboard.press("1")
    notice = other.get_by_role("alert")
    expect(notice).to_contain_text("Somebody else has answered")
    expect(notice).to_contain_text("none of these")
    assert answer_of(page, name)["kind"] == "none"
    notice.get_by_role("button", name="Replace").click()
    said(other, "Moved")
    # The first page has heard of it.
    expect(page.locator("#list .document", has_text=name).locator(".badge:not(.warn)")).to_contain_text(
        "moved"
    )
    assert answer_of(page, name)["kind"] == "moved"
    other.keyboard.press("u")
    said(other, "as before")
    expect(page.locator("#list .document", has_text=name).locator(".badge:not(.warn)")).to_contain_text(
        "none of these"
    )


def test_an_answer_to_many_does_not_replace_one_that_was_not_seen(page: Any, open_page: Open) -> None:
    other = open_page(expect="409")
    other.evaluate("window.dispatchEvent(new Event('pagehide'))")
    name = shown(page)
    other.locator("#list").focus()
    other.keyboard.press("x")
    for _ in range(2):
        other.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("n")
    said(page, "none of these")
    bar = other.get_by_role("region", name="Selected documents")
    bar.get_by_role("button", name="Accept").click()
    said(other, "Accepted 2 documents; 1 has another answer, which was left alone")
    assert answer_of(page, name)["kind"] == "none"
    expect(other.locator("#list .badge.none")).to_have_count(1)
    other.locator("#status").get_by_role("button", name="Replace").click()
    said(other, "Accepted 1 document")
    assert answer_of(page, name)["kind"] == "accepted"
    for _ in range(2):
        other.keyboard.press("u")
        said(other, "as before")
        other.evaluate("document.getElementById('status').className = 'status'")
    assert answer_of(page, name)["kind"] == "none"


def test_what_happened_while_the_line_was_down_is_caught_up_on(chromium: Any, served: Served) -> None:
    context = chromium.new_context()
    context.route("**/api/v1/events", lambda route: route.fulfill(status=503))
    page = context.new_page()
    try:
        with page.expect_response("**/api/v1/events"):
            page.goto(served.url)
        page.wait_for_selector(".runner")
        rows = [one["row"] for one in api(page, "/documents?sort=useful&state=open&limit=60")["rows"]]
        # One in sight, and one that the page has loaded without showing it.
        for row in (rows[2], rows[50]):
            tell(page, {"client": "other", "kind": "none", "rows": [row]})
        tell(page, {"client": "other", "kind": "undo"})
        expect(page.locator("#list .badge:not(.warn)")).to_have_count(0)
        tell(page, {"client": "other", "kind": "skip", "rows": [rows[50]]})
        context.unroute("**/api/v1/events")
        expect(page.locator("#row-2 .badge.none")).to_have_count(1)
        page.locator("#list").evaluate("(list) => { list.scrollTop = 88 * 49; }")
        expect(page.locator("#row-50 .badge.skipped")).to_have_count(1)
    finally:
        for _ in range(2):
            tell(page, {"client": "other", "kind": "undo"})
        context.close()


def test_answers_leave_and_come_as_files(page: Any, tmp_path: Path) -> None:
    name = shown(page)
    page.keyboard.press("3")
    said(page, "Moved")
    path = answer_of(page, name)["path"]
    page.get_by_role("button", name="Data").click()
    page.get_by_role("menuitem", name="Export").click()
    page.get_by_label("Format").select_option("jsonl")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    file = tmp_path / "answers.jsonl"
    download.value.save_as(file)
    assert [one["id"] for one in map(json.loads, file.read_text().splitlines())] == [name]
    page.keyboard.press("u")
    said(page, "as before")
    page.get_by_role("button", name="Data").click()
    page.get_by_role("menuitem", name="Import").click()
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("dialog").get_by_role("button", name="Import").click()
    expect(page.get_by_role("dialog")).to_contain_text("1 answer read")
    assert answer_of(page, name)["path"] == path


def test_a_killed_server_loses_no_answer_and_the_page_says_what_is_not_saved(
    open_page: Open, served: Served, sample: Path, tmp_path: Path
) -> None:
    shutil.copytree(sample / "model", tmp_path / "model")
    own = Served(tmp_path / "model", sample / "documents.jsonl")
    own.start()
    page = open_page(expect="ERR_CONNECTION|Failed to load")
    try:
        page.goto(own.url)
        page.wait_for_selector(".runner")
        first = shown(page)
        page.keyboard.press("1")
        said(page, "Moved")
        own.kill()
        second = shown(page)
        page.keyboard.press("a")
        expect(page.locator("#status.failed")).to_contain_text("does not answer")
        # It is not shown as saved, and it is still the one to answer.
        assert shown(page) == second
        expect(page.locator("#list .document", has_text=second).locator(".badge:not(.warn)")).to_have_count(0)
        # The server is back where it was: the page goes on, and hears again of what others do.
        own.start()
        third = page.locator("#list .document .id").nth(3).text_content()
        (row,) = [
            one["row"]
            for one in api(page, "/documents?limit=200&sort=useful&state=open")["rows"]
            if one["id"] == third
        ]
        tell(page, {"client": "other", "kind": "skip", "rows": [row]})
        expect(page.locator("#list .badge.skipped")).to_have_count(1)
        tell(page, {"client": "other", "kind": "undo"})
        expect(page.locator("#list .badge.skipped")).to_have_count(0)
        page.keyboard.press("a")
        said(page, f"Accepted {second}")
        page.keyboard.press("u")
        expect(page.locator("#document-pane h2.id")).to_have_attribute("title", second)
        page.goto(own.url + "#state=done")
        page.reload()
        page.wait_for_selector("body[data-ready]")
        expect(page.locator("#list .document .id")).to_have_text([first])
        assert answer_of(page, first)["kind"] == "moved"
    finally:
        own.end()
