"""Pieces of HTML and the page they stand in; whatever comes from outside goes through `escape` here."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template

# Control characters are not allowed in HTML, and single surrogates cannot be written as UTF-8.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# Tables of more rows get a box of their own to scroll in, with the headings in sight.
LONG_TABLE = 40


def page(title: str, subtitle: str, sections: Sequence[tuple[str, str, str]], style: str = "") -> str:
    """A self-contained page; every section is its anchor, its heading and its HTML, and `style` is more CSS.

    Examples
    --------
    >>> page("Papers", "3 documents", [("tree", "Tree", "<p>text</p>")]).splitlines()[0]
    '<!DOCTYPE html>'
    """
    template, css, script = (
        files("himecat.evaluation.report").joinpath(part).read_text("utf-8")
        for part in ("page.html", "style.css", "script.js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template(template).substitute(
        title=escape(title),
        subtitle=subtitle,
        style=css + style,
        script=script,
        script_hash=f"sha256-{digest}",
        links="\n".join(f'<a href="#{key}">{heading}</a>' for key, heading, _ in sections),
        sections="\n\n".join(
            f'<section id="{key}"><h2>{heading}</h2>\n{body}\n</section>' for key, heading, body in sections
        ),
    )


def escape(text: str) -> str:
    """Make any text safe inside an element or a quoted attribute.

    Examples
    --------
    >>> escape('<b class="x">')
    '&lt;b class=&quot;x&quot;&gt;'
    """
    return html.escape(_UNPRINTABLE.sub("\ufffd", str(text)), quote=True)


def name(text: str) -> str:
    """A name from outside; `bdi` keeps right-to-left names from reordering what stands around them.

    Examples
    --------
    >>> name("R&D")
    '<bdi>R&amp;D</bdi>'
    """
    return f"<bdi>{escape(text)}</bdi>"


def path(names: Sequence[str], muted: int = 0) -> str:
    """A path as `a › b › c`, its first `muted` names in the background.

    Examples
    --------
    >>> path(["a", "b"])
    '<span class="path"><bdi>a</bdi> › <bdi>b</bdi></span>'
    """
    if not names:
        return '<span class="path none">nothing assigned</span>'
    front = " › ".join(name(part) for part in names[:muted])
    back = " › ".join(name(part) for part in names[muted:])
    if front and back:
        front = f'<span class="muted">{front} › </span>'
    return f'<span class="path">{front}{back}</span>'


def count(number: int) -> str:
    """A whole number with thousands apart.

    Examples
    --------
    >>> count(26400)
    '26,400'
    """
    return f"{number:,}"


def percent(share: float) -> str:
    """A share as a whole percentage that never rounds to "none" or "all" what is neither.

    Examples
    --------
    >>> percent(0.714), percent(0.9999), percent(1.0), percent(0.001)
    ('71%', '&gt;99%', '100%', '&lt;1%')
    """
    rounded = round(100 * share)
    if rounded == 0 and share > 0:
        return "&lt;1%"
    if rounded == 100 and share < 1:
        return "&gt;99%"
    return f"{rounded}%"


def bar(share: float, kind: str = "") -> str:
    """A horizontal bar; the number it shows must stand beside it.

    Examples
    --------
    >>> bar(0.5)
    '<span class="bar" aria-hidden="true"><i style="width:50.0%"></i></span>'
    """
    width = 100 * min(max(share, 0.0), 1.0)
    return (
        f'<span class="{f"bar {kind}".strip()}" aria-hidden="true"><i style="width:{width:.1f}%"></i></span>'
    )


def seconds(duration: float) -> str:
    """A duration people can read.

    Examples
    --------
    >>> seconds(0.25), seconds(41.3), seconds(3725)
    ('0.25 s', '41.3 s', '62 min 5 s')
    """
    if duration < 10:
        return f"{duration:.2f} s"
    if duration < 120:
        return f"{duration:.1f} s"
    minutes, rest = divmod(round(duration), 60)
    return f"{minutes} min {rest} s"


def table(headings: Sequence[str], rows: Sequence[str], css: str = "", attributes: str = "") -> str:
    """A table in a box that scrolls by itself; `headings` and `rows` are HTML.

    Examples
    --------
    >>> table(["<th>a</th>"], ["<tr><td>1</td></tr>"]).count("<tr>")
    2
    """
    head = "".join(headings)
    body = "\n".join(rows)
    box = "scroll long" if len(rows) > LONG_TABLE else "scroll"
    return (
        f'<div class="{box}" tabindex="0"><table class="{css}" {attributes}><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def heading(text: str, css: str = "") -> str:
    """The heading of a column; the class `n` is that of numbers.

    Examples
    --------
    >>> heading("F1", "n")
    '<th scope="col" class="n">F1</th>'
    """
    attribute = f' class="{css}"' if css else ""
    return f'<th scope="col"{attribute}>{text}</th>'


def number_table(headings: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose columns are all numbers.

    Examples
    --------
    >>> number_table(["a"], [["1"]]).count('class="n"')
    2
    """
    cells = ["<tr>" + "".join(f'<td class="n">{cell}</td>' for cell in row) + "</tr>" for row in rows]
    return table([heading(text, "n") for text in headings], cells, "narrow")
