"""Who may ask and what for: hosts, origins, tokens, files, sizes; and the API as OpenAPI describes it."""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

pytest.importorskip("fastapi", reason="the extra himecat[server] is not installed")

from himecat import Default, HiMeCat
from himecat.errors import DataError, OutputError
from himecat.server.guard import Rules
from himecat.server.workspace import Workspace
from servers import Client, in_thread

EVIL = '<img src=x onerror="alert(1)"> the striker scored'
DOCUMENTS = [
    {"id": "a", "text": EVIL, "labels": "sport", "tags": ["<b>x</b>"]},
    {"id": "b", "text": "a late goal in the match", "tags": ["x"]},
    {"id": "c", "text": "parliament passed the budget law", "labels": "politics"},
    {"id": "d", "text": "the minister defended the law"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("safe")
    HiMeCat(metadata=["tags"], method=Default(min_count=1), threads=1).fit(DOCUMENTS).save(found / "model")
    (found / "news.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in DOCUMENTS))
    return found


@pytest.fixture
def client(folder: Path) -> Iterator[Client]:
    with in_thread(Workspace(folder / "model", folder / "news.jsonl", threads=1)) as found:
        yield found


def status(client: Client, method: str, path: str, body: bytes | None = None, **headers: str) -> int:
    return client.raw(method, path, body, **headers)[0]


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{}",
        "localhost",
        "localhost:1",
        "127.0.0.1.evil.example:{}",
        "a@localhost:{}",
    ],
)
def test_a_name_that_others_lead_here_is_refused(client: Client, host: str) -> None:
    assert status(client, "GET", "/api/v1/documents", host=host.format(client.port)) == 403


def test_the_own_names_are_known(client: Client) -> None:
    for host in ("localhost", "127.0.0.1", "[::1]"):
        assert status(client, "GET", "/api/v1/tree", host=f"{host}:{client.port}") == 200


def test_pages_of_other_sites_can_change_nothing(client: Client) -> None:
    body = json.dumps({"client": "a", "kind": "skip", "rows": [1]}).encode()
    json_type = {"content_type": "application/json"}
    for origin in ("http://evil.example", "null", f"https://127.0.0.1:{client.port}", "http://127.0.0.1:1"):
        assert status(client, "POST", "/api/v1/actions", body, origin=origin, **json_type) == 403
    assert status(client, "POST", "/api/v1/actions", body, sec_fetch_site="cross-site", **json_type) == 403
    assert status(client, "POST", "/api/v1/actions", body, content_type="text/plain") == 415
    # A page elsewhere can send a body without a type, too.
    assert status(client, "POST", "/api/v1/actions", body) == 415
    assert client.get("/actions") == []
    own = f"http://127.0.0.1:{client.port}"
    assert status(client, "POST", "/api/v1/actions", body, origin=own, **json_type) == 200
    client.post("/actions", {"client": "a", "kind": "undo"})


def test_pages_of_other_sites_can_link_here_and_nothing_else(client: Client) -> None:
    def asked(path: str, mode: str, site: str = "cross-site") -> int:
        return status(client, "GET", path, sec_fetch_site=site, sec_fetch_mode=mode)

    assert asked("/", "navigate") == asked("/docs", "navigate") == 200
    assert asked("/api/v1/tree", "cors", "same-origin") == asked("/api/v1/export", "navigate", "none") == 200
    for path in ("/api/v1/proposals", "/api/v1/events", "/api/v1/export", "/"):
        assert asked(path, "no-cors") == 403
    assert asked("/api/v1/export", "navigate") == 403
    assert status(client, "GET", "/api/v1/events", origin="http://evil.example") == 403


@pytest.mark.parametrize(
    "query", ['"', "NEAR(", "*", "a*", "text:goal", "-goal", "{text}:a", "a AND", "\0", "(" * 500, "a " * 400]
)
def test_what_is_searched_is_words_and_never_the_language_of_the_index(client: Client, query: str) -> None:
    assert client.get(f"/documents?limit=0&query={quote(query)}")["total"] >= 0


@pytest.mark.parametrize(
    "body",
    [
        b"\xff",
        b"[" * 100_000,
        b'{"client": "\\ud800", "kind": "skip", "rows": [1]}',
        b'{"client": "a", "kind": "move", "rows": [1], "path": ["\\u0000"]}',
        b'{"client": "a", "kind": "skip", "rows": [1e400]}',
        '{"client": "a", "kind": "skip", "rows": [1], "expected": {"²": null}}'.encode(),
    ],
)
def test_odd_bodies_are_refused_with_a_sentence(client: Client, body: bytes) -> None:
    found, _, said = client.raw("POST", "/api/v1/actions", body, content_type="application/json")
    assert found in (400, 404, 422)
    assert json.loads(said)["error"].endswith(".")
    assert client.get("/documents?state=done&limit=0")["total"] == 0


def test_names_of_categories_can_be_seen(client: Client) -> None:
    change = {"changes": [{"op": "rename", "path": ["sport"], "name": "a\0b"}]}
    found, said = client.ask("POST", "/tree/changes", change)
    assert found == 422
    assert "cannot be seen" in said["error"]


def test_a_document_that_cannot_be_used_is_not_explained(folder: Path) -> None:
    with in_thread(Workspace(folder / "model", threads=1, skip_bad=True)) as client:
        for wrong in ({}, {"text": 5}, {"text": ""}):
            assert client.ask("POST", "/explain", {"document": wrong})[0] == 422


def _spoiled(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xa5" * 30_000)


@pytest.mark.parametrize("damage", [_spoiled, lambda path: path.write_bytes(b"no database " * 500)])
def test_a_damaged_store_is_said_in_one_sentence(
    folder: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    shutil.copytree(folder / "model", tmp_path / "model")
    Workspace(tmp_path / "model", folder / "news.jsonl", threads=1).close()
    damage(tmp_path / "model.review.sqlite")
    with pytest.raises(DataError, match=r"is damaged \(.*\): move it away"):
        Workspace(tmp_path / "model", folder / "news.jsonl", threads=1)


def test_a_store_that_cannot_be_written_keeps_its_answers(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read-only or full: nobody is told to move good answers away."""
    shutil.copytree(folder / "model", tmp_path / "model")
    with in_thread(Workspace(tmp_path / "model", folder / "news.jsonl", threads=1)) as client:
        body = {"client": "a", "kind": "skip", "rows": [1]}
        client.post("/actions", body)
        resource = pytest.importorskip("resource", reason="there is no such limit here")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
        try:
            code, said = client.ask("POST", "/actions", {**body, "rows": [2]})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert code == 503
        assert "is the disk full" in said["error"]
        assert client.get("/documents?state=done&limit=0")["total"] == 1
        client.post("/actions", {**body, "rows": [2]})
    real = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda path, **given: real(f"file:{path}?mode=ro", uri=True, **given)
    )
    with pytest.raises(OutputError, match=r"cannot be written \(.*readonly.*or the folder read-only"):
        Workspace(tmp_path / "model", folder / "news.jsonl", threads=1)


@pytest.mark.parametrize(
    "path",
    [
        "/page/../store.py",
        "/page/..%2fstore.py",
        "/page/%2e%2e/%2e%2e/__init__.py",
        "/page//etc/passwd",
        "/page/....//store.py",
        "/page/index.html%00.js",
        "/docs/../store.py",
        "/page/",
    ],
)
def test_no_file_but_those_of_the_page_is_read(client: Client, path: str) -> None:
    found, _, body = client.raw("GET", path)
    assert found == 404
    assert set(json.loads(body)) == {"error"}


def test_every_answer_forbids_foreign_and_inline_code(client: Client) -> None:
    for path in ("/", "/docs", "/api/v1/tree", "/api/v1/nothing", "/health", "/openapi.json"):
        _, headers, body = client.raw("GET", path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        if headers["content-type"].startswith("text/html"):
            assert b"<script>" not in body
            assert b"//" not in body.replace(b"http://", b"").replace(b"<!--", b"") or path == "/"


def test_texts_are_data_and_never_a_page(client: Client) -> None:
    _, headers, body = client.raw("GET", "/api/v1/documents/0")
    assert headers["content-type"] == "application/json"
    assert json.loads(body)["text"] == EVIL


def test_with_a_token_nothing_is_told_without_it(folder: Path) -> None:
    token = "0123456789abcdef"
    with in_thread(Workspace(folder / "model", threads=1), token) as client:
        assert client.ask("GET", "/tree")[0] == 401
        assert client.ask("GET", "/tree", authorization="Bearer wrong")[0] == 401
        assert client.ask("GET", "/tree", authorization=f"Bearer {token}")[0] == 200
        assert status(client, "GET", "/") == 401
        assert status(client, "GET", "/?token=wrong") == 401
        found, headers, _ = client.raw("GET", f"/?token={token}")
        assert (found, headers["location"]) == (303, "/")
        assert "HttpOnly" in headers["set-cookie"]
        assert "SameSite=Strict" in headers["set-cookie"]
        cookie = headers["set-cookie"].partition(";")[0]
        assert client.ask("GET", "/tree", cookie=cookie)[0] == 200
        assert status(client, "GET", "/health") == 200


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "can be reached by other machines: choose a token"),
        (["--host", "0.0.0.0", "--token", "short"], "at least 16 characters"),
        (["--documents", "no-such-file.csv"], "there is no such file"),
    ],
)
def test_what_cannot_be_served_is_said_before(
    folder: Path, himecat: Callable[..., object], arguments: list[str], said: str
) -> None:
    ended = himecat("serve", folder / "model", "--port", "0", "--no-browser", *arguments)
    assert ended.code == 2  # type: ignore[attr-defined]
    assert said in ended.err  # type: ignore[attr-defined]


def test_any_address_of_the_machine_is_one_of_its_names_but_no_foreign_name() -> None:
    rules = Rules("0.0.0.0", 80, "0123456789abcdef")
    assert rules.knows("192.168.1.5")
    assert not rules.knows("evil.example")


def test_long_bodies_and_large_batches_are_refused(client: Client) -> None:
    too_long = b" " * (16 * 1024 * 1024 + 1)
    assert status(client, "POST", "/api/v1/predict", too_long, content_type="application/json") == 413
    chunked = iter([b" " * (1 << 20)] * 17)
    found = client.raw("POST", "/api/v1/predict", chunked, content_type="application/json")[0]  # type: ignore[arg-type]
    assert found == 413
    many = {"documents": [{"text": "a goal"}] * 1001}
    assert client.ask("POST", "/predict", many)[0] == 422
    assert client.ask("POST", "/predict", {"documents": [{"text": "a goal"}] * 1000})[0] == 200


def test_more_predictions_at_once_than_there_are_turns_are_told_to_wait(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from himecat.server import routes_predict

    begun, go_on = threading.Semaphore(0), threading.Event()
    real = routes_predict._predicted

    def slow(*given: object) -> object:
        begun.release()
        go_on.wait(30)
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(routes_predict, "_predicted", slow)
    body = {"documents": [{"text": "a goal"}]}
    with in_thread(Workspace(folder / "model", threads=1)) as client:
        found: list[int] = []
        waiting = [
            threading.Thread(target=lambda: found.append(client.ask("POST", "/predict", body)[0]))
            for _ in range(8)
        ]
        for one in waiting:
            one.start()
        for _ in waiting:
            assert begun.acquire(timeout=30)
        code, headers, _ = client.raw(
            "POST", "/api/v1/predict", json.dumps(body).encode(), content_type="application/json"
        )
        assert (code, headers["retry-after"]) == (429, "1")
        assert client.get("/tree")["nodes"]
        go_on.set()
        for one in waiting:
            one.join(30)
        assert found == [200] * 8


def test_what_takes_too_long_is_told_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from himecat.server import routes_predict

    go_on = threading.Event()
    monkeypatch.setattr(routes_predict, "_explained", lambda *_: go_on.wait(30))
    with in_thread(Workspace(folder / "model", threads=1), seconds=0.1) as client:
        code, found = client.ask("POST", "/explain", {"document": {"text": "a goal"}})
        go_on.set()
        assert code == 503
        assert "longer than 0.1 seconds" in found["error"]


def test_metrics_and_health_tell_what_was_done(client: Client) -> None:
    client.get("/tree")
    found = client.raw("GET", "/metrics")[2].decode()
    assert 'himecat_requests_total{method="GET",route="/api/v1/tree",status="200"} 1' in found
    assert "himecat_documents 4" in found
    assert json.loads(client.raw("GET", "/health")[2]) == {"status": "ok", "model_version": 1}


def test_programs_get_the_columns_of_predict(client: Client) -> None:
    found = client.post("/predict", {"documents": [{"id": "x", "text": "the law", "tags": ["x"]}], "top": 1})
    (one,) = found["predictions"]
    assert (one["id"], one["path"]) == ("x", "politics")
    assert {"level1", "confidence", "alternative1", "alternative1_confidence"} <= set(one)
    code, wrong = client.ask("POST", "/predict", {"documents": [{"text": ""}]})
    assert (code, wrong["error"]) == (422, "document 0: the text is empty.")
    assert client.ask("POST", "/explain", {"document": {"text": "the law"}, "path": ["nothing"]})[0] == 404


def test_the_api_keeps_to_its_description(folder: Path) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    from hypothesis import HealthCheck, Phase, given, settings
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    from himecat.server.app import make_api

    workspace = Workspace(folder / "model", folder / "news.jsonl", threads=1)
    app = make_api(workspace)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    # A stream of events does not end, and learning is tested elsewhere.
    schema = schema.exclude(path="/api/v1/events").exclude(path="/api/v1/jobs", method="POST")
    schema = schema.exclude(path="/api/v1/tree/changes").exclude(path="/api/v1/model/back")
    tried = set()
    try:
        for found in schema.get_all_operations():
            operation = found.ok()
            tried.add(operation.label)

            @settings(
                max_examples=12,
                deadline=None,
                derandomize=True,
                database=None,
                phases=[Phase.explicit, Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy())
            def check(case: object) -> None:
                # What fields a document has is not for the description to say.
                case.call_and_validate(excluded_checks=[positive_data_acceptance])  # type: ignore[attr-defined]

            check()
    finally:
        workspace.close()
    assert len(tried) > 12
