"""The API as the page uses it: documents, answers, conflicts, files, learning; nothing that was said is ever lost."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the extra himecat[server] is not installed")

from himecat import HiMeCat
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy
from himecat.server.workspace import Workspace
from servers import Client, as_command, in_thread


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and its documents; copy it."""
    folder = tmp_path_factory.mktemp("served")
    letters = sample_documents(250)
    labels = sample_split(letters, per_leaf=3)
    for letter, label in zip(letters, labels, strict=True):
        letter["labels"] = label
    HiMeCat(metadata=METADATA, threads=1).fit(letters).save(folder / "model")
    (folder / "letters.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in letters))
    return folder


@pytest.fixture
def place(fitted: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(fitted, tmp_path / "place"))


def opened(place: Path) -> Workspace:
    return Workspace(place / "model", place / "letters.jsonl", threads=1)


@pytest.fixture
def client(place: Path) -> Iterator[Client]:
    with in_thread(opened(place)) as found:
        yield found


def act(client: Client, kind: str, rows: list[int], **more: object) -> dict[str, object]:
    found: dict[str, object] = client.post("/actions", {"client": "tab", "kind": kind, "rows": rows, **more})
    return found


def answer(client: Client, row: int) -> dict[str, object] | None:
    found: dict[str, object] | None = client.get(f"/documents/{row}")["answer"]
    return found


def open_rows(client: Client, count: int) -> list[int]:
    """Documents without a label."""
    rows = client.get("/documents?sort=useful&limit=100")["rows"]
    return [one["row"] for one in rows if one["label"] is None][:count]


def test_the_tree_counts_every_document_once(client: Client) -> None:
    nodes = client.get("/tree")["nodes"]
    assert nodes[0]["count"] == client.get("/model")["documents"] == 250
    by_parent: dict[int, int] = {}
    for node in nodes[1:]:
        by_parent[node["parent"]] = by_parent.get(node["parent"], 0) + node["count"]
    assert all(by_parent[n["node"]] == n["count"] for n in nodes if not n["leaf"])
    leaf = max((n for n in nodes if n["leaf"]), key=lambda n: n["count"])
    assert client.get(f"/documents?node={leaf['node']}&limit=1")["total"] == leaf["count"]


def test_documents_are_found_by_words_values_and_sorted(client: Client) -> None:
    found = client.get("/documents?query=lorry&limit=200")
    assert found["total"] == len(found["rows"]) > 0
    assert all("lorry" in client.get(f"/documents/{d['row']}")["text"].lower() for d in found["rows"])
    value = client.get("/values?type=tags")[0]
    tagged = client.get(f"/documents?value=tags:{value['value']}&limit=200")
    assert tagged["total"] == value["count"]
    assert all(value["value"] in one["metadata"]["tags"] for one in tagged["rows"])
    sure = [one["confidence"] for one in client.get("/documents?sort=unsure&limit=200")["rows"]]
    assert sure == sorted(sure)
    # Neither quotes nor operators of the search language are anything but words.
    assert client.get("/documents?query=%22%20OR%20NEAR(%20*")["total"] >= 0


def test_a_document_says_why_with_places_in_its_text(client: Client) -> None:
    one = client.get("/documents/3")
    assert one["why"]["words"]
    assert len(one["alternatives"]) == 5
    for reason in one["why"]["words"]:
        for start, end in reason["spans"]:
            assert one["text"][start:end].lower() == reason["word"]
    other = one["alternatives"][0]["path"]
    asked = client.get(f"/documents/3?{'&'.join(f'path={name}' for name in other)}")
    assert asked["why"]["path"] == other != one["why"]["path"]


def test_actions_count_in_the_tree_and_are_undone_one_by_one(client: Client) -> None:
    row, other = open_rows(client, 2)
    before = client.get("/tree")
    target = client.get("/labels")["labels"][0]
    done = act(client, "move", [row], path=target)
    assert done["done"] == 1
    assert answer(client, row) == {
        "path": target,
        "kind": "moved",
        "by": "tab",
        "at": answer(client, row)["at"],  # type: ignore[index]
        "action": done["actions"][0],  # type: ignore[index]
    }
    act(client, "none", [other])
    assert client.get("/tree")["nodes"][0]["count"] == 249
    assert client.get("/documents?state=done")["total"] == 2
    act(client, "undo", [])
    assert answer(client, other) is None
    assert answer(client, row) is not None
    act(client, "undo", [])
    assert client.get("/tree") == before
    assert client.ask("POST", "/actions", {"client": "tab", "kind": "undo"})[0] == 409


def test_two_people_do_not_overwrite_each_other(client: Client) -> None:
    row = open_rows(client, 1)[0]
    target = client.get("/labels")["labels"][0]
    first = {"client": "a", "kind": "move", "rows": [row], "path": target, "expected": {str(row): None}}
    second = {"client": "b", "kind": "none", "rows": [row], "expected": {str(row): None}}
    number = client.post("/actions", first)["actions"][0]
    status, found = client.ask("POST", "/actions", second)
    assert status == 409
    assert (found["row"], found["answer"]["by"], found["answer"]["path"]) == (row, "a", target)
    # Who has seen the other's answer may change it; who was overruled has nothing to take back.
    client.post("/actions", {**second, "expected": {str(row): number}})
    assert client.ask("POST", "/actions", {"client": "a", "kind": "undo"})[0] == 409
    client.post("/actions", {"client": "b", "kind": "undo"})
    assert answer(client, row)["by"] == "a"  # type: ignore[index]


def test_an_answer_to_many_leaves_those_alone_that_others_have_answered(client: Client) -> None:
    first, second, third, fourth, skipped = open_rows(client, 5)
    one, other = client.get("/labels")["labels"][:2]
    known = client.post("/actions", {"client": "b", "kind": "move", "rows": [first], "path": one})["last"]
    client.post("/actions", {"client": "b", "kind": "move", "rows": [second], "path": one})
    client.post("/actions", {"client": "b", "kind": "skip", "rows": [skipped]})
    act(client, "none", [third])
    many = {"path": other, "seen": known, "expected": {str(fourth): None}}
    done = act(client, "move", [first, second, third, fourth, skipped], **many)
    assert (done["done"], done["left"]) == (4, [second])
    assert answer(client, second)["path"] == one  # type: ignore[index]
    assert {answer(client, row)["by"] for row in (first, third, fourth, skipped)} == {"tab"}  # type: ignore[index]
    # Whoever has been told may insist; whoever expects something else is not asked.
    assert act(client, "move", [fourth], path=one, seen=99, expected={str(fourth): None})["left"] == [fourth]
    assert act(client, "move", [second], path=other, seen=done["last"])["left"] == []
    assert answer(client, second)["path"] == other  # type: ignore[index]


def test_an_undo_does_not_bring_back_what_its_author_has_taken_back(client: Client) -> None:
    row, other = open_rows(client, 2)
    number = act(client, "none", [row, other])["actions"][0]  # type: ignore[index]
    client.post("/actions", {"client": "b", "kind": "skip", "rows": [row], "expected": {str(row): number}})
    act(client, "undo", [])
    client.post("/actions", {"client": "b", "kind": "undo"})
    assert answer(client, row) is None


def test_a_category_is_not_accepted_by_another_model_than_that_of_the_preview(client: Client) -> None:
    given = {"client": "tab", "node": 1, "min_confidence": 0.5, "preview": False}
    seen = client.post("/actions/accept-category", {**given, "preview": True})["model_version"]
    assert client.ask("POST", "/actions/accept-category", {**given, "model_version": seen + 1})[0] == 409
    assert client.post("/actions/accept-category", {**given, "model_version": seen})["actions"]


def test_only_one_at_a_time_changes_the_model(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from himecat.server import learning

    begun, go_on, names = threading.Event(), threading.Event(), learning.change_names

    def slow(*given: object) -> None:
        begun.set()
        assert go_on.wait(30)
        names(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(learning, "change_names", slow)
    rename = {"changes": [{"op": "rename", "path": ["waste"], "name": "rubbish"}], "preview": False}
    found: list[int] = []
    first = threading.Thread(target=lambda: found.append(client.ask("POST", "/tree/changes", rename)[0]))
    first.start()
    assert begun.wait(30)
    status, said = client.ask("POST", "/tree/changes", rename)
    go_on.set()
    first.join(30)
    assert (status, said["error"]) == (409, "The model is being changed: wait for it, or cancel the job.")
    assert found == [200]
    assert ["rubbish"] in [one[:1] for one in client.get("/labels")["labels"]]


def test_the_sure_documents_of_a_category_are_accepted_and_undone_as_one(client: Client) -> None:
    given = {"client": "tab", "node": 1, "min_confidence": 0.5}
    seen = client.post("/actions/accept-category", given)
    assert seen["count"] > 0
    assert seen["actions"] == []
    assert len(seen["sample"]) == 5
    assert client.get("/documents?state=done")["total"] == 0
    client.post("/actions/accept-category", {**given, "preview": False})
    assert client.get("/documents?state=done")["total"] == seen["count"]
    act(client, "undo", [])
    assert client.get("/documents?state=done")["total"] == 0


def test_pages_that_listen_hear_of_actions(client: Client) -> None:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=20)
    connection.request("GET", "/api/v1/events")
    stream = connection.getresponse()
    assert stream.readline() == b"retry: 1000\n"
    row = open_rows(client, 1)[0]
    act(client, "skip", [row])
    lines = iter(stream.readline, b"")
    assert next(line for line in lines if line.startswith(b"event")) == b"event: action\n"
    assert json.loads(next(lines).removeprefix(b"data: "))["rows"] == [row]
    connection.close()


@pytest.mark.parametrize("form", ["jsonl", "csv", "xlsx", "label-studio"])
def test_answers_leave_and_come_back_in_every_format(client: Client, form: str) -> None:
    first, second, third = open_rows(client, 3)
    target = client.get("/labels")["labels"][2]
    act(client, "move", [first], path=target)
    act(client, "none", [second])
    status, headers, body = client.raw("GET", f"/api/v1/export?format={form}")
    assert status == 200
    assert "attachment" in headers["content-disposition"]
    for _ in range(2):
        act(client, "undo", [])
    act(client, "accept", [third])
    status, _, found = client.raw(
        "POST", f"/api/v1/import?format={form}", body, content_type="application/octet-stream"
    )
    assert status == 200, found
    assert json.loads(found)["read"] == 2
    assert answer(client, first)["path"] == target  # type: ignore[index]
    assert answer(client, second)["kind"] == "none"  # type: ignore[index]
    # The same again changes nothing; other answers are left alone.
    act(client, "move", [first], path=client.get("/labels")["labels"][1])
    _, _, found = client.raw(
        "POST", f"/api/v1/import?format={form}", body, content_type="application/octet-stream"
    )
    assert json.loads(found) == {"read": 1, "unknown": 0, "conflicts": 1, "actions": []}


def test_an_import_that_cannot_be_read_says_why(client: Client) -> None:
    body = b'{"id": "letter-0001", "answer": "no-such-category"}\n'
    status, _, found = client.raw("POST", "/api/v1/import", body, content_type="application/x-ndjson")
    assert status == 422
    assert "unknown label 'no-such-category'" in json.loads(found)["error"]
    assert "/tmp" not in json.loads(found)["error"]


def test_learning_replaces_the_model_and_one_step_leads_back(place: Path) -> None:
    with in_thread(opened(place)) as client:
        rows = open_rows(client, 6)
        target = client.get("/labels")["labels"][0]
        act(client, "move", rows[:3], path=target)
        act(client, "none", rows[3:])
        before = (place / "model" / "model.json").read_bytes()
        placed = [one["path"] for one in client.get("/documents?limit=200")["rows"]]
        job = client.until(client.post("/jobs", {"kind": "learn"})["job"]["id"])
        assert job["state"] == "done", job
        assert job["result"]["moved"] == sum(move["count"] for move in job["result"]["moves"]) > 0
        assert job["result"]["answers"] == 6
        assert client.get("/model")["model_version"] == 2
        after = (place / "model" / "model.json").read_bytes()
        assert after != before
        assert (place / "model.before" / "model.json").read_bytes() == before
        for row in rows[:3]:
            assert client.get(f"/documents/{row}")["path"] == target
        client.post("/model/back", {})
        assert (place / "model" / "model.json").read_bytes() == before
        assert [one["path"] for one in client.get("/documents?limit=200")["rows"]] == placed
        assert answer(client, rows[0])["path"] == target  # type: ignore[index]
    # What was learned is what `correct` gives for the same answers, none among them.
    learned = HiMeCat.load(place / "model.before")
    corpus, labels = learned.learned_from()
    assert {corpus.ids[row] for row in labels.nowhere.tolist()} == {f"{corpus.ids[row]}" for row in rows[3:]}


def test_a_model_with_several_paths_does_not_learn_from_single_ones(tmp_path: Path) -> None:
    letters = sample_documents(60)
    for letter, other in pairwise(letters):
        letter["labels"] = [letter["labels"], other["labels"]]
    tree = sample_taxonomy()
    HiMeCat(tree, threads=1, allow_empty_leaves=True).fit(letters[:59]).save(tmp_path / "model")
    with in_thread(Workspace(tmp_path / "model", threads=1)) as client:
        act(client, "accept", [0])
        status, found = client.ask("POST", "/jobs", {"kind": "learn"})
    assert status == 409
    assert "`himecat review`, and teach it whole sets with `himecat correct`" in found["error"]


def test_a_cancelled_job_leaves_the_model_as_it_was(place: Path) -> None:
    with in_thread(opened(place)) as client:
        assert client.ask("POST", "/jobs", {"kind": "learn"})[0] == 409
        act(client, "accept", open_rows(client, 3))
        before = {file.name: file.read_bytes() for file in (place / "model").iterdir()}
        number = client.post("/jobs", {"kind": "learn"})["job"]["id"]
        client.until(number, ("running",))
        client.ask("DELETE", f"/jobs/{number}")
        assert client.until(number)["state"] == "cancelled"
        assert {file.name: file.read_bytes() for file in (place / "model").iterdir()} == before
        assert client.get("/model")["model_version"] == 1
    assert sorted(one.name for one in place.iterdir() if "sqlite" not in one.name) == [
        "letters.jsonl",
        "model",
    ]


def test_categories_are_renamed_at_once_and_old_answers_follow(client: Client) -> None:
    row = open_rows(client, 1)[0]
    target = client.get("/labels")["labels"][0]
    act(client, "move", [row], path=target)
    change = {"changes": [{"op": "rename", "path": target, "name": "found again"}]}
    seen = client.post("/tree/changes", change)
    assert (seen["done"], seen["needs_refit"], seen["job"]) == (False, False, None)
    assert target in client.get("/labels")["labels"]
    found = client.post("/tree/changes", {**change, "preview": False})
    assert found["done"]
    assert found["tree_version"] == 2
    new = [*target[:-1], "found again"]
    assert new in client.get("/labels")["labels"]
    assert answer(client, row)["path"] == new  # type: ignore[index]
    client.post("/model/back", {})
    assert target in client.get("/labels")["labels"]


def test_a_new_category_is_learned_from_its_examples(client: Client) -> None:
    ids = [client.get(f"/documents/{row}")["id"] for row in open_rows(client, 4)]
    added = {"op": "add", "parent": [], "name": "new", "documents": ids}
    found = client.post("/tree/changes", {"changes": [added], "preview": False})
    assert found["needs_refit"]
    job = client.until(found["job"]["id"])
    assert job["state"] == "done", job
    assert ["new"] in client.get("/labels")["labels"]


def test_without_documents_the_kept_words_are_shown(place: Path) -> None:
    with in_thread(Workspace(place / "model", threads=1)) as client:
        about = client.get("/model")
        assert (about["source"], about["documents"], about["labelled"] > 0) == ("kept words", 250, True)
        assert client.get("/documents/3")["why"]["words"]
        act(client, "accept", open_rows(client, 3))
        assert client.until(client.post("/jobs", {"kind": "learn"})["job"]["id"])["state"] == "done"


def test_other_documents_take_the_place_of_the_old_ones_and_answers_stay(place: Path) -> None:
    with in_thread(opened(place)) as client:
        row = open_rows(client, 1)[0]
        name = client.get(f"/documents/{row}")["id"]
        act(client, "accept", [row])
    lines = (place / "letters.jsonl").read_text().splitlines(keepends=True)
    (place / "letters.jsonl").write_text("".join(reversed(lines)))
    with in_thread(opened(place)) as client:
        (done,) = client.get("/documents?state=done")["rows"]
        assert (done["id"], done["row"]) == (name, len(lines) - 1 - row)


def test_nothing_is_lost_when_the_server_is_killed_between_two_answers(place: Path) -> None:
    with as_command(place / "model", "--documents", place / "letters.jsonl") as (process, client):
        first, second = open_rows(client, 2)
        act(client, "none", [first])
        process.kill()
        process.wait()
    with as_command(place / "model", "--documents", place / "letters.jsonl") as (_, client):
        assert answer(client, first)["kind"] == "none"  # type: ignore[index]
        act(client, "skip", [second])
        assert [one["kind"] for one in client.get("/actions?since=0")] == ["none", "skip"]
        act(client, "undo", [])
        act(client, "undo", [])
        assert answer(client, first) is None


@pytest.mark.parametrize("step", ["before", "between", "on the way back"])
def test_a_server_killed_while_it_replaced_a_model_is_put_right(
    place: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from himecat.server.folders import digest
    from himecat.server.store import Store, store_path

    opened(place).close()
    model, new, before = place / "model", place / "model.new", place / "model.before"
    old = digest(model)
    HiMeCat.load(model).set_params(min_confidence=0.1).save(new)
    other = digest(new)
    store = Store(store_path(model))
    store.set_facts({"replacing": other})
    store.close()
    if step == "between":
        model.rename(place / "aside")
        new.rename(model)
        (place / "aside").rename(new)
    elif step == "before":
        shutil.copytree(new, before)
    opened(place).close()
    assert not new.exists()
    assert digest(model) == (other if step == "between" else old)
    assert digest(before) == (old if step == "between" else other)


def test_a_second_server_of_the_same_model_is_refused(place: Path, himecat: Callable[..., object]) -> None:
    workspace = opened(place)
    try:
        ended = himecat("serve", place / "model", "--port", "0", "--no-browser")
        assert ended.code == 2  # type: ignore[attr-defined]
        assert "is in use by another server" in ended.err  # type: ignore[attr-defined]
    finally:
        workspace.close()


def test_the_map_has_a_point_for_every_document(client: Client) -> None:
    info = client.get("/map/info")
    status, _, body = client.raw("GET", "/api/v1/map")
    count = info["documents"]
    assert (status, len(body)) == (200, count * (8 + 2 + 1))
    points = np.frombuffer(body, "<f4", 2 * count).reshape(-1, 2)
    assert np.isfinite(points).all()
    assert (np.hypot(*points.T) <= 1.01).all()
    leaves = np.frombuffer(body, "<u2", count, 8 * count)
    listed = client.get("/documents?limit=50")["rows"]
    assert [info["leaves"][leaves[one["row"]]]["node"] for one in listed] == [one["node"] for one in listed]
    assert len(info["edges"]) == len(info["nodes"]) - 1


def test_the_true_labels_of_a_dataset_folder_are_not_shown_as_known(tmp_path: Path) -> None:
    from himecat.sample import write_sample

    folder = write_sample(tmp_path / "sample", 250, per_leaf=3)
    HiMeCat(threads=1).fit(folder).save(tmp_path / "model")
    workspace = Workspace(tmp_path / "model", folder, threads=1)
    labelled = int((workspace.view.placed.labels >= 0).sum())
    workspace.close()
    assert labelled == len(HiMeCat.load(tmp_path / "model").learned_from().supervision) < 100


def test_a_proposal_becomes_a_category(client: Client) -> None:
    found = client.get("/proposals")
    assert found
    assert found[0]["words"]
    assert found[0]["size"] >= len(found[0]["rows"]) > 0
    given = {"name": "new one", "parent": [], "preview": True}
    seen = client.post(f"/proposals/{found[0]['id']}/accept", given)
    assert (seen["needs_refit"], seen["job"]) == (True, None)
    done = client.post(f"/proposals/{found[0]['id']}/accept", {**given, "preview": False})
    job = client.until(done["job"]["id"])
    assert job["state"] == "done", job
    assert ["new one"] in client.get("/labels")["labels"]
    assert client.ask("POST", "/proposals/999/accept", given)[0] == 404
