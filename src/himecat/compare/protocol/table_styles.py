"""One table in several styles: Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from himecat.errors import UsageError
from himecat.runtime.terminal import harmless_cell, printable

ABSENT = "–"

_MARKDOWN_SPECIAL = re.compile(r"([\\`*_\[\]|<>#])")
_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "−": "$-$", ABSENT: "--", "β": r"$\beta$",
    "<": "$<$", ">": "$>$", "↑": r"$\uparrow$",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One cell.

    Attributes
    ----------
    text : str
        What it says.
    mark : str
        What stands behind it, raised: stars.
    bold : bool
        Whether it is the best of its column.
    value : float, optional
        What to sort by.

    Examples
    --------
    >>> Cell("0.5", mark="*").mark
    '*'
    """

    text: str
    mark: str = ""
    bold: bool = False
    value: float | None = None


@dataclass(frozen=True)
class Table:
    """A table before it has a style.

    Attributes
    ----------
    caption : str
        What stands above.
    headings : sequence of tuple
        A group of columns and the column; the group is empty where a column stands alone.
    rows : sequence of sequence of Cell
        The first cell of a row is its name.
    note : str
        What stands below.
    records : sequence of mapping
        The same in full for CSV, where a cell is one number.

    Examples
    --------
    >>> table = Table("Letters", [("", "System"), ("Leaf", "micro")], [[Cell("A"), Cell("0.5")]])
    >>> table.titles
    ['System', 'Leaf micro']
    """

    caption: str
    headings: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    records: Sequence[Mapping[str, object]] = field(default_factory=list)

    @property
    def titles(self) -> list[str]:
        """What each column is called in one line."""
        return [f"{group} {column}".strip() for group, column in self.headings]


def render(tables: Sequence[Table], style: str) -> str:
    r"""Tables as text, one after another.

    Parameters
    ----------
    tables : sequence of Table
        The tables.
    style : str
        `markdown`, `latex` (with the packages booktabs and graphicx) or `csv`.

    Examples
    --------
    >>> row = [Cell("R&D"), Cell("0.5", "*", True)]
    >>> print(render([Table("", [("", "System"), ("Leaf", "micro")], [row])], "markdown"))
    | System | Leaf micro |
    |---|--:|
    | R&D | **0.5**\* |
    """
    styles: dict[str, Callable[[Sequence[Table]], str]] = {
        "markdown": lambda all_: "\n".join(map(_markdown, all_)),
        "latex": lambda all_: "\n".join(map(_latex, all_)),
        "csv": _csv,
    }
    if style not in styles:
        raise UsageError(f"The style of a table is one of {', '.join(styles)}, not {style!r}.")
    return styles[style](tables)


def _markdown(table: Table) -> str:
    lines = [f"**{_markdown_text(table.caption)}**", ""] if table.caption else []
    lines.append("| " + " | ".join(map(_markdown_text, table.titles)) + " |")
    lines.append("|---" + "|--:" * (len(table.headings) - 1) + "|")
    for row in table.rows:
        cells = []
        for cell in row:
            text = _markdown_text(cell.text)
            cells.append((f"**{text}**" if cell.bold else text) + _markdown_text(cell.mark))
        lines.append("| " + " | ".join(cells) + " |")
    if table.note:
        lines += ["", _markdown_text(table.note)]
    return "\n".join(lines) + "\n"


def _markdown_text(text: str) -> str:
    return _MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _latex(table: Table) -> str:
    lines = [r"% needs \usepackage{booktabs,graphicx}", r"\begin{table}[t]", r"\centering"]
    if table.caption:
        lines.append(rf"\caption{{{_latex_text(table.caption)}}}")
    # A table wider than the page is made smaller, any other is left as it is.
    lines.append(r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%")
    lines += [rf"\begin{{tabular}}{{l{'r' * (len(table.headings) - 1)}}}", r"\toprule"]
    lines += _latex_head(table.headings)
    lines.append(r"\midrule")
    for row in table.rows:
        cells = []
        for cell in row:
            text = _latex_text(cell.text)
            raised = cell.mark.replace("↑", r"\uparrow")
            cells.append(
                (rf"\textbf{{{text}}}" if cell.bold else text) + (f"$^{{{raised}}}$" if raised else "")
            )
        # The end of the line above would take a bracket or a star for its own.
        guard = "{}" if cells[0].startswith(("[", "*")) else ""
        lines.append(guard + " & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}}"]
    if table.note:
        lines.append(rf"\par\smallskip{{\footnotesize {_latex_text(table.note)}}}")
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _latex_head(headings: Sequence[tuple[str, str]]) -> list[str]:
    """The groups of columns with a rule under each, where there are any, and the columns."""
    columns = " & ".join(_latex_text(column) for _, column in headings) + r" \\"
    if not any(group for group, _ in headings):
        return [columns]
    groups: list[tuple[str, int, int]] = []
    for place, (group, _) in enumerate(headings, 1):
        if groups and group and groups[-1][0] == group:
            groups[-1] = (group, groups[-1][1], place)
        else:
            groups.append((group, place, place))
    above = " & ".join(
        rf"\multicolumn{{{last - first + 1}}}{{c}}{{{_latex_text(group)}}}" if group else ""
        for group, first, last in groups
    )
    rules = "".join(rf"\cmidrule(lr){{{first}-{last}}}" for group, first, last in groups if group)
    return [above + r" \\", rules, columns]


def _latex_text(text: str) -> str:
    return "".join(_LATEX_SPECIAL.get(character, character) for character in " ".join(text.split()))


def _csv(tables: Sequence[Table]) -> str:
    records = [record for table in tables for record in table.records]
    stream = io.StringIO()
    names = list(dict.fromkeys(name for record in records for name in record))
    writer = csv.DictWriter(stream, names, lineterminator="\n")
    for record in (dict(zip(names, names, strict=True)), *records):
        shown = {name: printable(cell) if isinstance(cell, str) else cell for name, cell in record.items()}
        writer.writerow({name: harmless_cell(cell) for name, cell in shown.items()})
    return stream.getvalue()
