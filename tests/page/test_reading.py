"""Looking: the tree, the list, a document and why it is where it is."""

from __future__ import annotations

from typing import Any

from page.browser import Open, api, expect, shown


def active_row(page: Any) -> Any:
    return page.locator("#list .document.active")


def test_the_tree_has_counts_confidence_and_accuracy_and_a_click_filters(page: Any) -> None:
    nodes = {one["name"]: one for one in api(page, "/tree")["nodes"] if one["depth"] == 1}
    row = page.locator("[role=treeitem]", has_text="waste").first
    expect(row).to_have_accessible_name(
        f"waste, {nodes['waste']['count']} documents, mean confidence {round(100 * nodes['waste']['confidence'])}%, "
        f"estimated accuracy {round(100 * nodes['waste']['accuracy'])}%"
    )
    row.click()
    expect(page.locator("#list-title")).to_have_text("waste")
    expect(page.locator(".total")).to_have_text(f"{nodes['waste']['count']} documents")
    page.get_by_role("button", name="Remove the filter category").click()
    expect(page.locator("#list-title")).to_have_text("All documents")


def test_the_tree_is_walked_by_keys(page: Any) -> None:
    page.locator("#tree").focus()
    page.keyboard.press("ArrowDown")
    first = page.locator("#tree").get_attribute("aria-activedescendant")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(f"#{first}")).to_have_attribute("aria-expanded", "false")
    expect(page.locator("[role=treeitem][data-index='2']")).to_have_attribute("aria-level", "2")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    below = page.locator(f"#{page.locator('#tree').get_attribute('aria-activedescendant')}")
    expect(below).to_have_attribute("aria-level", "3")
    page.keyboard.press("Enter")
    expect(below).to_have_attribute("aria-selected", "true")
    expect(page.locator(".chip", has_text="category")).to_be_visible()


def test_a_category_is_found_by_a_part_of_its_path(page: Any) -> None:
    page.keyboard.press("f")
    page.keyboard.type("leisure ev")
    expect(page.locator("[role=treeitem]:not(.faint)")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator("#list-title")).to_have_text("leisure› library› events")


def test_only_rows_in_sight_exist_and_the_last_is_reached(page: Any) -> None:
    assert page.locator("#list .document").count() < 40
    page.locator("#list").focus()
    page.keyboard.press("End")
    total = api(page, "/documents?state=open&limit=0")["total"]
    expect(active_row(page)).to_have_attribute("aria-posinset", str(total))
    last = api(page, f"/documents?state=open&sort=useful&offset={total - 1}&limit=1")["rows"][0]
    expect(active_row(page).locator(".id")).to_have_text(last["id"])
    expect(page.locator("#document-pane h2.id")).to_have_text(last["id"])


def test_sorts_search_and_states_ask_the_server(page: Any) -> None:
    page.select_option("#sort", "unsure")
    expect(page.locator("#list .document.active .id")).to_have_text(
        api(page, "/documents?sort=unsure&limit=1")["rows"][0]["id"]
    )
    page.keyboard.press("/")
    page.keyboard.type("lorry")
    found = api(page, "/documents?query=lorry&limit=0")["total"]
    expect(page.locator(".total")).to_have_text(f"{found} documents")
    assert 0 < found < 1000
    # The address keeps all of it.
    assert "query=lorry" in page.url
    assert "sort=unsure" in page.url
    page.reload()
    expect(page.locator(".total")).to_have_text(f"{found} documents")
    page.go_back()
    expect(page.locator(".chip", has_text="lorry")).to_have_count(0)
    page.get_by_role("button", name="Answered").click()
    expect(page.locator(".message", has_text="No document is like that")).to_be_visible()


def test_a_document_has_its_levels_runners_up_and_the_words_that_speak_for_it(page: Any) -> None:
    row = api(page, "/documents?sort=useful&state=open&limit=1")["rows"][0]
    whole = api(page, f"/documents/{row['row']}")
    assert shown(page) == row["id"]
    assert page.locator(".placement li").count() == len(whole["path"])
    assert page.locator(".runner").count() == len(whole["alternatives"]) == 5
    assert page.locator(".text-of-document").text_content() == whole["text"]
    marked = {text.lower() for text in page.locator("mark").all_text_contents()}
    assert marked
    assert marked <= {one["word"] for one in whole["why"]["words"]}
    # Why another one?
    page.get_by_role("button", name="Why").first.click()
    expect(page.locator("h3", has_text="Why")).to_contain_text(whole["alternatives"][0]["path"][-1])
    page.get_by_role("button", name="Back to its own place").click()
    expect(page.locator(".runners [aria-pressed=true]")).to_have_count(0)


def test_a_metadata_value_shows_all_documents_with_it(page: Any) -> None:
    chip = page.locator("#document-pane .chip").first
    value = chip.locator(".text").text_content()
    chip.click()
    expect(page.locator(".chips .chip")).to_contain_text(value or "?")
    for row in api(page, f"/documents?value=senders:{value}")["rows"]:
        assert value in row["metadata"]["senders"]


def test_the_text_of_a_document_never_runs(open_page: Open) -> None:
    page = open_page("#query=onerror&state=all")
    expect(page.locator("#document-pane h2.id")).to_have_text("hostile")
    text = page.locator(".text-of-document")
    expect(text).to_contain_text("<script>")
    assert page.locator("#document-pane img, #list img, #list b:has-text('Mallory')").count() == 0
    assert page.title() != "run"
    # Marks are in the right place behind a character of two units.
    assert all(
        one.lower() in page.locator(".words .word").all_text_contents()
        for one in text.locator("mark").all_text_contents()
    )


def test_a_document_that_rather_fits_nowhere_says_so_before_its_place(open_page: Open) -> None:
    page = open_page("#query=chromodynamics&state=all")
    (found,) = api(page, "/documents?query=chromodynamics")["rows"]
    assert found["none"] > 0.5
    told = f"{100 * found['none']:.0f}%"
    row = active_row(page)
    expect(row).to_contain_text(f"fits nowhere {told}")
    expect(row).to_contain_text(f"if anywhere{found['path'][0]}")
    # No confidence stands beside it that would say the opposite.
    expect(row.locator(".bar")).to_have_count(0)
    block = page.locator("#document-pane .block").first
    expect(block).to_contain_text(f"It probably fits nowhere: {told}If anywhere{found['path'][0]}")
    expect(page.locator("#document-pane", has_text="Placed in")).to_have_count(0)
    # Nor is it among those that are accepted as sure.
    given = {"client": "a", "node": 0, "min_confidence": 0, "preview": True}
    sure = page.request.post(page.url.split("#")[0] + "api/v1/actions/accept-category", data=given).json()
    about = api(page, "/model")
    assert sure["count"] == about["documents"] - about["labelled"] - 1


def test_keys_are_listed_and_can_be_switched_off(page: Any) -> None:
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_contain_text("undo your last answer")
    dialog.get_by_label("Single keys").uncheck()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    before = shown(page)
    page.keyboard.press("j")
    page.keyboard.press("?")
    assert shown(page) == before
    page.get_by_label("Single keys").check()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.keyboard.press("j")
    expect(page.locator("#document-pane h2.id")).not_to_have_attribute("title", before)
    page.keyboard.press("k")
    expect(page.locator("#document-pane h2.id")).to_have_attribute("title", before)
