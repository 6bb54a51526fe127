"""`himecat tree`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from himecat.cli import options as o
from himecat.cli.correct import NewModel
from himecat.cli.options import names, open_model, write_json
from himecat.cli.places import check_encoder
from himecat.errors import UsageError

if TYPE_CHECKING:
    from himecat.estimator import HiMeCat

_TAKES = {
    "rename": ("CATEGORY", "NAME"),
    "move": ("CATEGORY", "PARENT"),
    "merge": ("CATEGORY", "INTO"),
    "split": ("CATEGORY",),
    "add": ("NAME", "[PARENT]"),
    "delete": ("CATEGORY",),
}
_BELONGS = {
    "name": "merge",
    "examples": "add",
    "keywords": "add",
    "proposal": "add",
    "child": "split",
    "groups": "split",
    "drop_labels": "delete",
}
# Documents of a proposal that become examples.
_EXAMPLES = 10


def tree(
    model: o.Model,
    change: Annotated[
        str | None,
        typer.Argument(
            metavar="[CHANGE]",
            help="`rename CATEGORY NAME`, `move CATEGORY PARENT`, `merge CATEGORY INTO`, `split CATEGORY`, "
            "`add NAME [PARENT]`, `delete CATEGORY`; without it, the tree is shown.",
        ),
    ] = None,
    what: Annotated[list[str] | None, typer.Argument(metavar="[WHAT]...", help="What it is about.")] = None,
    *,
    name: Annotated[
        str | None, o.option(o.INPUT, "merge: the name of what both become.", "--name", metavar="NAME")
    ] = None,
    examples: Annotated[
        str | None,
        o.option(
            o.INPUT,
            "add: ids of documents that belong there, separated by commas.",
            "--examples",
            metavar="A,B",
        ),
    ] = None,
    keywords: Annotated[
        str | None,
        o.option(o.INPUT, "add: words that speak for it, separated by commas.", "--keywords", metavar="A,B"),
    ] = None,
    child: Annotated[
        list[str] | None,
        o.option(
            o.INPUT,
            "split: a child and ids of its documents; once for each child.",
            "--child",
            metavar="NAME=A,B",
        ),
    ] = None,
    groups: Annotated[
        int | None,
        o.option(
            o.INPUT, "split: into so many children, found among its documents.", min=2, max=100, metavar="N"
        ),
    ] = None,
    proposal: Annotated[
        str | None,
        o.option(
            o.INPUT, "add: the N-th proposal of a file that `propose` wrote.", "--proposal", metavar="FILE:N"
        ),
    ] = None,
    documents: Annotated[
        Path | None,
        o.option(
            o.INPUT, "Documents, where examples are not kept with the model.", "--documents", metavar="DOCS"
        ),
    ] = None,
    drop_labels: Annotated[
        bool, o.option(o.INPUT, "delete: its labels do not go to the category above.", "--drop-labels")
    ] = False,
    sheet: o.Sheet = None,
    delimiter: o.Delimiter = None,
    bound: o.Bound = None,
    online: o.Online = False,
    threads: o.Threads = None,
    whole: Annotated[
        bool,
        o.option(o.METHOD, "Where a refit is needed, calibrate anew as well, as fit does.", "--whole"),
    ] = False,
    dry_run: Annotated[
        bool, o.option(o.OUTPUT, "Say what happens to labels and documents, and stop.", "--dry-run")
    ] = False,
    output: NewModel = None,
    overwrite: o.Overwrite = False,
    json: o.Json = None,
    quiet: o.Quiet = False,
) -> None:
    """Change the tree of a model: rename, move, merge, split, add or delete a category.

    Labels and predictions of before stay readable. PARENT is / for the top level. Renaming, moving and merging
    need no refit; the others fit again from the documents kept with the model.

    Example: `himecat tree model move waste/bulky streets`
    """
    from himecat.errors import OutputError
    from himecat.model_folder.files import digest_of
    from himecat.runtime.files import check_target
    from himecat.runtime.progress import Progress
    from himecat.runtime.terminal import write

    given = None
    if change is not None:
        given = _change(
            change,
            what or [],
            {
                "name": name,
                "examples": examples,
                "keywords": keywords,
                "proposal": proposal,
                "child": child,
                "groups": groups,
                "drop_labels": drop_labels,
            },
        )
    target, replaces = (model, True) if output is None else (output, overwrite)
    digest = digest_of(model)
    fitted = open_model(model, online=online, quiet=quiet)
    check_encoder({"--json": json, "--output": output}, fitted.encoder)
    fitted.set_params(threads=threads, sheet=sheet, delimiter=delimiter)
    if given is None:
        _show(fitted, json)
        return
    if not dry_run:
        check_target(target, replaces, "The model")
    progress = Progress(quiet=quiet)
    if groups is not None:
        from himecat.teaching.proposing import propose_children

        given["children"] = propose_children(fitted, given["path"], groups)
    plan = fitted.plan_tree(given, documents, placed=dry_run)
    if json is not None:
        found = {"said": list(plan.said), "needs_refit": plan.needs_refit, "done": not dry_run}
        write_json(json, found)
    if str(json) != o.STDOUT:
        write("\n".join(plan.said))
    if dry_run:
        return
    fitted.change_tree(plan, whole=whole, progress=progress)
    if output is None and digest_of(model) != digest:
        raise OutputError(
            f"{model} has been replaced by another model in the meantime, and stays as it is: run it again."
        )
    fitted.save(target, overwrite=replaces)
    progress.say(f"The model is in {target}.")


def _change(change: str, what: list[str], given: dict[str, Any]) -> dict[str, Any]:
    """The change that a command line asks for."""
    if change not in _TAKES:
        raise UsageError(f"There is no change {change!r} of a tree; there are {', '.join(_TAKES)}.")
    takes = _TAKES[change]
    fewest = sum(not one.startswith("[") for one in takes)
    if not fewest <= len(what) <= len(takes):
        raise UsageError(f"Write: himecat tree MODEL {change} {' '.join(takes)}.")
    for option, value in given.items():
        if value and _BELONGS[option] != change:
            raise UsageError(f"--{option.replace('_', '-')} goes with {_BELONGS[option]}, not with {change}.")
    if change == "add":
        ids, parent = names(given["examples"]), ""
        if given["proposal"]:
            more, parent = _proposed(given["proposal"])
            ids += more
        return {
            "op": change,
            "name": what[0],
            "parent": what[1] if len(what) > 1 else parent,
            "documents": ids,
            "keywords": names(given["keywords"]),
        }
    found: dict[str, Any] = {"op": change, "path": what[0]}
    if change == "split":
        if bool(given["child"]) == bool(given["groups"]):
            raise UsageError(
                "A category is split by --child NAME=A,B, once for each child, or by --groups N."
            )
        found["children"] = _children(given["child"] or [])
    elif change == "delete":
        found["labels"] = "drop" if given["drop_labels"] else "parent"
    else:
        found[{"rename": "name", "move": "to", "merge": "into"}[change]] = what[1]
        if given["name"]:
            found["name"] = given["name"]
    return found


def _proposed(written: str) -> tuple[list[str], Any]:
    """Examples and parent of a proposal that stands in a file."""
    from himecat.input.formats import iter_records
    from himecat.input.problems import Problems

    file, colon, number = written.rpartition(":")
    if not colon or not number.isdecimal():
        raise UsageError(
            f"--proposal takes FILE:N, a file and the number of a proposal in it, not {written!r}."
        )
    problems = Problems()
    records = [one.fields for one in iter_records(file, problems) if one.fields is not None]
    problems.raise_errors()
    if not 1 <= int(number) <= len(records):
        raise UsageError(f"{file} has {len(records):,} proposals, and no number {number}.")
    chosen = records[int(number) - 1]
    ids, parent = chosen.get("ids"), chosen.get("parent")
    if not isinstance(ids, list) or not isinstance(parent, list):
        raise UsageError(f"{file} is not a file that `himecat propose` wrote: it has no 'ids' and 'parent'.")
    return [str(one) for one in ids[:_EXAMPLES]], parent


def _children(written: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in written:
        name, equals, ids = one.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--child takes NAME=A,B, a name and ids of documents, not {one!r}.")
        found.setdefault(name.strip(), []).extend(names(ids))
    return found


def _show(fitted: HiMeCat, json: Path | None) -> None:
    """The tree, and how it has changed."""
    from himecat.input.taxonomy.earlier import changes_of
    from himecat.runtime.terminal import printable, write

    shown, lines, stack = fitted.taxonomy_, [], [0]
    while stack:
        node = stack.pop()
        if node:
            lines.append("  " * (shown.depths[node] - 1) + printable(shown.names[node]))
        stack += reversed(shown.children[node])
    changes = changes_of(shown)
    if json is not None:
        write_json(json, {"leaves": [list(path) for path in fitted.paths_], "changes": changes})
        if str(json) == o.STDOUT:
            return
    if changes:
        lines += ["", "Changed since the fit:", *(f"  {said}" for step in changes for said in step)]
    write("\n".join(lines))
