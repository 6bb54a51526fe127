"""What all figures have in common: colours, plain text and how they are written."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from himecat.errors import UsageError
from himecat.runtime.files import write_atomic

# The palette of Okabe and Ito, for any kind of colour vision; without its yellow, which is hard to see on white.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d")
# Shapes distinguish what colour does not.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

INK, SOFT, LINE, SHADE = "#1b2126", "#5a646d", "#dde2e6", "#e8f1f7"

_SUFFIXES = (".png", ".svg")
_SETTINGS: dict[Any, Any] = {
    # Names are measured in the first, which comes with matplotlib; a viewer without it has one as wide, or narrower.
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": SOFT,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "legend.frameon": False,
    "svg.hashsalt": "himecat",
    # Text stays text, to be found and read aloud.
    "svg.fonttype": "none",
}


@contextmanager
def house_style() -> Iterator[Any]:
    """The class of figures, while matplotlib's settings are ours and not the user's.

    Raises
    ------
    UsageError
        matplotlib is not installed.

    Examples
    --------
    >>> with house_style() as figures:
    ...     figures(figsize=(2, 1)).get_size_inches().tolist()
    [2.0, 1.0]
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(
            'Figures need the package matplotlib: install it with `pip install "himecat[plots]"`.'
        ) from None
    with matplotlib.rc_context(), warnings.catch_warnings():
        # A name in a script that the font lacks is no reason to worry; an SVG shows it all the same.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield Figure


def save(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a figure as PNG or SVG, by the suffix; the same figure gives the same bytes.

    Examples
    --------
    >>> save(None, "figure.bmp")
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: figure.bmp: a figure is written as .png or .svg.
    """
    suffix = check_suffix(path)
    stream = io.BytesIO()
    figure.savefig(
        stream,
        format=suffix[1:],
        dpi=150,
        facecolor="white",
        metadata={"Date": None} if suffix == ".svg" else {"Software": None},
    )
    write_atomic(path, stream.getvalue(), what="The figure")


def check_suffix(path: str | os.PathLike[str]) -> str:
    """The suffix of a figure's file; an error before any work is done where it is none we write.

    Examples
    --------
    >>> check_suffix("Figure.SVG")
    '.svg'
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        raise UsageError(f"{os.fspath(path)}: a figure is written as {' or '.join(_SUFFIXES)}.")
    return suffix


def plain(text: str) -> str:
    r"""Text as it is: a dollar sign starts no formula, and nothing breaks the line or an SVG.

    Examples
    --------
    >>> print(plain("$5\tto $9"))
    \$5 to \$9
    """
    printable = "".join(character if character.isprintable() else " " for character in str(text))
    return printable.replace("$", r"\$")


def shortened(text: str, limit: int) -> str:
    """Text of at most so many characters.

    Examples
    --------
    >>> shortened("quantitative finance", 12)
    'quantitativ…'
    """
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def look(number: int) -> tuple[str, str]:
    """Colour and marker of the category with that number; the shape changes when the colours begin again.

    Examples
    --------
    >>> look(0), look(7)
    (('#0072b2', 'o'), ('#0072b2', 's'))
    """
    colour = number % len(COLOURS)
    return COLOURS[colour], MARKERS[(colour + number // len(COLOURS)) % len(MARKERS)]
