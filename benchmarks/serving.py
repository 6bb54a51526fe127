"""How fast `himecat serve` answers, and how much memory it takes: on the sample, and on ../shared/data/arxiv-large.

    python benchmarks/serving.py [--model FOLDER --documents DOCS] [--json FILE]

Without a model, the sample is fitted first, and arxiv-large where it is there; fitting takes some minutes. The page is
measured in Chromium, where that and Playwright are installed. A bound is kept if the median keeps it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BOUNDS = {
    "up again": None,
    "first answers": 1.0,
    "filter by category": 0.2,
    "filter by value": 0.2,
    "sort and page": 0.2,
    "search": 0.2,
    "one document with why": 0.2,
    "store a correction": 0.02,
    "page: first paint": 1.0,
    "page: first document": 1.0,
    "page: filter": 0.2,
    "page: search": 0.2,
    "memory (GB)": 2.0,
}
# The most common ones, too: they have the longest lists.
WORDS = ["model", "the", "of a in", "because of the", "we", "comp", "problem", "street"]


class Server:
    """`himecat serve` in a process of its own, on any free port."""

    def __init__(self, *arguments: str | Path) -> None:
        command = [
            sys.executable,
            "-m",
            "himecat",
            "serve",
            *map(str, arguments),
            "--port",
            "0",
            "--no-browser",
        ]
        began = perf_counter()
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := re.search(r"http://[^ ]*:(\d+)/", line):
                self.port = int(found[1])
                break
        else:
            raise SystemExit("the server did not start")
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port)
        self.ask("GET", "/health")
        self.seconds = perf_counter() - began

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        raw = None if body is None else json.dumps(body).encode()
        self.connection.request(method, path, raw, {"content-type": "application/json"} if raw else {})
        found = self.connection.getresponse()
        read = found.read()
        assert found.status < 300, read
        return json.loads(read) if read.startswith((b"{", b"[")) else read

    def api(self, path: str) -> Any:
        return self.ask("GET", f"/api/v1{path}")

    @property
    def gigabytes(self) -> float:
        """The most memory that the process has had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        return int(found[1]) / 1e6 if found else float("nan")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def seconds(work: Any, times: int) -> tuple[float, float]:
    """The median and the longest of several times."""
    found = []
    for number in range(times):
        began = perf_counter()
        work(number)
        found.append(perf_counter() - began)
    return statistics.median(found), max(found)


def measure(model: Path, documents: Path, times: int) -> dict[str, tuple[float, float]]:
    """All figures of one model, the median and the worst."""
    for file in model.parent.glob(f"{model.name}.review.sqlite*"):
        file.unlink()
    server = Server(model, "--documents", documents)
    found = {"first start": (server.seconds,) * 2}
    first = server.gigabytes
    server.end()
    server = Server(model, "--documents", documents)
    found["up again"] = (server.seconds,) * 2

    def paint(_: int) -> None:
        for path in ("/model", "/tree", "/documents?sort=useful&limit=50"):
            server.api(path)
        server.ask("GET", "/")

    found["first answers"] = seconds(paint, 5)
    nodes = [one["node"] for one in server.api("/tree")["nodes"]]
    kinds = server.api("/model")["metadata"]
    values = [(kind, one["value"]) for kind in kinds for one in server.api(f"/values?type={kind}")]
    sorts = ["useful", "unsure", "disputed", "suspect", "none"]
    from urllib.parse import quote

    found["filter by category"] = seconds(
        lambda n: server.api(f"/documents?node={nodes[n % len(nodes)]}&sort=unsure"), times
    )
    found["filter by value"] = seconds(
        lambda n: server.api(f"/documents?value={quote(':'.join(values[n % len(values)]))}"), times
    )
    found["sort and page"] = seconds(
        lambda n: server.api(f"/documents?sort={sorts[n % len(sorts)]}&offset={n * 50}"), times
    )
    found["search"] = seconds(
        lambda n: server.api(f"/documents?query={quote(WORDS[n % len(WORDS)])}&sort=unsure"), times
    )
    count = server.api("/model")["documents"]
    found["one document with why"] = seconds(lambda n: server.api(f"/documents/{n * 37 % count}"), times)
    found["store a correction"] = seconds(
        lambda n: server.ask(
            "POST", "/api/v1/actions", {"client": "b", "kind": "accept", "rows": [n * 31 % count]}
        ),
        times,
    )
    found |= in_browser(server.port, times)
    found["memory (GB)"] = (server.gigabytes, max(first, server.gigabytes))
    server.end()
    return found


# Asks for another list as a person does, and waits until it is drawn.
ASK = """async ([id, event, value]) => {
  const list = document.getElementById("list");
  const began = performance.now();
  const done = new Promise((end) => {
    const seen = new MutationObserver(() => { if (!list.hasAttribute("aria-busy")) { seen.disconnect(); end(); } });
    seen.observe(list, { attributes: true, attributeFilter: ["aria-busy"] });
  });
  const control = id ? document.getElementById(id) : document.querySelectorAll("[role=treeitem]")[value];
  if (id) control.value = value;
  control.dispatchEvent(new Event(event, { bubbles: true }));
  await done;
  await new Promise(requestAnimationFrame);
  return performance.now() - began;
}"""


def in_browser(port: int, times: int) -> dict[str, tuple[float, float]]:
    """How long a person waits; nothing where there is no browser."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return {}
    path = next((one for name in BROWSERS if (one := shutil.which(name))), None)
    if path is None:
        return {}
    found: dict[str, list[float]] = {
        f"page: {what}": [] for what in ("first paint", "first document", "filter", "search")
    }
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for again in range(5):
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(f"http://127.0.0.1:{port}/")
            page.wait_for_selector(".runner")
            found["page: first document"].append(page.evaluate("performance.now()"))
            painted = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            found["page: first paint"].append(page.evaluate(painted))
            if again < 4:
                page.close()
        for number in range(times):
            found["page: search"].append(page.evaluate(ASK, ["query", "input", WORDS[number % len(WORDS)]]))
        page.evaluate(ASK, ["query", "input", ""])
        shown = min(10, page.locator("[role=treeitem]").count())
        for number in range(times):
            found["page: filter"].append(page.evaluate(ASK, [None, "click", number % shown]))
        browser.close()
    return {what: (statistics.median(all_) / 1e3, max(all_) / 1e3) for what, all_ in found.items()}


def fit(documents: Path, model: Path, *options: str) -> None:
    command = [sys.executable, "-m", "himecat", "fit", str(documents), "-o", str(model), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, help="measure this model folder; its answers are thrown away")
    parser.add_argument("--documents", type=Path)
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    tables: dict[str, dict[str, tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as place:
        if given.model is not None:
            # A copy: there may be answers beside it.
            model = Path(shutil.copytree(given.model, Path(place) / "model"))
            tables[given.model.name] = measure(model, given.documents, given.times)
        else:
            subprocess.run([sys.executable, "-m", "himecat", "demo", "-q", "-o", f"{place}/demo"], check=True)
            tables["sample"] = measure(
                Path(place, "demo/model"), Path(place, "demo/letters.csv"), given.times
            )
            large = SHARED / "arxiv-large"
            if large.is_dir():
                fit(large, Path(place) / "large")
                tables["arxiv-large"] = measure(Path(place) / "large", large, given.times)
    for name, found in tables.items():
        print(f"\n{name}")
        for what, (middle, worst) in found.items():
            bound = BOUNDS.get(what)
            if what == "up again" and name in ("sample", "model"):
                bound = 2.0
            told = "" if bound is None else f"   bound {bound:g}: {'kept' if middle <= bound else 'NOT KEPT'}"
            print(f"  {what:24} {middle:8.3f}  worst {worst:8.3f}{told}")
    if given.json:
        given.json.write_text(json.dumps(tables, indent=2) + "\n")


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
