"""The figures of a run as pictures: SVG, drawn by matplotlib (extra: report).

Colours are those of Okabe and Ito, which people with any colour vision can tell apart; each variant has a
marker or a hatching of its own as well. The background is white on any page.
"""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hyce.evaluate.report.scores import RANKS, Estimate, Line, Summary
from hyce.privacy import neutral

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#8C6D00")
_MARKERS = "osD^vPX*"
_HATCHES = ("", "//", "..", "\\\\", "xx", "--", "oo", "++")
_STYLE: dict[Any, Any] = {
    # Whatever the reader's own matplotlibrc says.
    "text.usetex": False,
    "font.family": "DejaVu Sans",
    "svg.fonttype": "path",
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "svg.hashsalt": "hyce",  # the same figures give the same file
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "hatch.linewidth": 0.5,
    "hatch.color": "white",
}
_WIDTH = 8.0
"""Inches."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture with the words that stand for it."""

    title: str
    alt: str
    svg: bytes


def plots(summary: Summary) -> tuple[Plot, ...]:
    """The pictures of a run; one that would be empty is left out. Raises ImportError without matplotlib."""
    lines = [line for line in summary.variants if not line.unavailable]
    scored = [line for line in lines if line.scores.score]
    kinds = {kind: None for line in lines for kind in _by_kind(line)}
    timed = [line for line in lines if line.total_ms]
    counted = [line for line in lines if line.prompt_tokens or line.completion_tokens]
    ranked = [line for line in lines if line.ranks]
    rows = len(kinds) * (len(lines) + 1)
    wanted: list[tuple[str, Sequence[Line], float, Callable[[Axes, Sequence[Line]], None]]] = [
        ("Score by variant, with 95 % intervals", scored, 0.5 * len(scored), _draw_scores),
        ("Score by kind of question, with 95 % intervals", lines if kinds else [], 0.22 * rows, _draw_kinds),
        ("Time of an answer: median, and up to the 90th percentile", timed, 0.55 * len(timed), _draw_times),
        ("Tokens of an answer, mean", counted, 0.45 * len(counted), _draw_tokens),
        ("Rank of the first passage that holds the evidence", ranked, 2.4, _draw_ranks),
    ]
    return tuple(_plot(title, drawn, height, draw) for title, drawn, height, draw in wanted if drawn)


def _plot(
    title: str, lines: Sequence[Line], height: float, draw: Callable[[Axes, Sequence[Line]], None]
) -> Plot:
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    out = io.BytesIO()
    with rc_context(_STYLE), warnings.catch_warnings():
        # A character that the font lacks is drawn as a box.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure = Figure(figsize=(_WIDTH, height + 1.4), layout="constrained", facecolor="white")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        axes.set_title(title, loc="left", fontsize=11)
        draw(axes, lines)
        handles, labels = axes.get_legend_handles_labels()
        if len(handles) > 1:
            figure.legend(handles, labels, loc="outside lower left", ncols=3, frameon=False, fontsize=9)
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    names = ", ".join(neutral(line.name) for line in lines)
    return Plot(title, f"{title}: {names}. The tables hold the same figures.", out.getvalue())


# -- the pictures ----------------------------------------------------------------------------------------


def _draw_scores(axes: Axes, lines: Sequence[Line]) -> None:
    for row, line in enumerate(lines):
        score = line.scores.score
        assert score is not None  # noqa: S101 - what has none isn't drawn
        _interval(axes, score, row, _look(0), "Eval Score" if row == 0 else "")
        for shift, found, marker, colour, name in (
            (-0.22, line.scores.correctness, "^", _COLOURS[1], "correctness"),
            (0.22, line.scores.faithfulness, "s", _COLOURS[2], "faithfulness"),
        ):
            if found:
                label = name if row == 0 else None
                axes.plot(
                    found.value, row + shift, marker, color=colour, markersize=5, label=label, clip_on=False
                )
        axes.annotate(
            f"{100 * score.value:.1f}%",
            (1, row),
            xytext=(10, 0),
            textcoords="offset points",
            va="center",
            annotation_clip=False,
        )
    _name_rows(axes, [line.name for line in lines])
    _show_shares(axes)


def _draw_kinds(axes: Axes, lines: Sequence[Line]) -> None:
    kinds = list({kind: None for line in lines for kind in _by_kind(line)})
    step = 0.8 / len(lines)
    for number, line in enumerate(lines):
        label = _short(line.name)
        for row, kind in enumerate(kinds):
            found = _by_kind(line).get(kind)
            if found:
                place = row + (number - (len(lines) - 1) / 2) * step
                _interval(axes, found, place, _look(number), label)
                label = ""
    for row in range(1, len(kinds)):
        axes.axhline(row - 0.5, color="#bbbbbb", lw=0.8)
    _name_rows(axes, kinds)
    _show_shares(axes)


def _by_kind(line: Line) -> dict[str, Estimate]:
    """Of each kind the share that is drawn: Eval Score, or who abstained."""
    found = {**line.by_kind, **line.apart}
    drawn = {kind.replace("_", " "): scores.score for kind, scores in found.items() if scores.score}
    return {**drawn, "unanswerable: abstained": line.abstained} if line.abstained else drawn


def _draw_times(axes: Axes, lines: Sequence[Line]) -> None:
    for row, line in enumerate(lines):
        for number, (shift, found, name) in enumerate(
            ((-0.14, line.total_ms, "in all"), (0.14, line.model_ms, "the model"))
        ):
            if found:
                colour, marker = _look(number)
                label = name if row == 0 else None
                axes.plot(
                    [found.median / 1000, found.p90 / 1000], [row + shift] * 2, "|-", color=colour, lw=2
                )
                axes.plot(found.median / 1000, row + shift, marker, color=colour, label=label)
    _name_rows(axes, [line.name for line in lines])
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds")


def _draw_tokens(axes: Axes, lines: Sequence[Line]) -> None:
    rows = range(len(lines))
    prompt = [line.prompt_tokens or 0.0 for line in lines]
    completion = [line.completion_tokens or 0.0 for line in lines]
    axes.barh(rows, prompt, 0.6, color=_COLOURS[0], label="prompt")
    axes.barh(rows, completion, 0.6, left=prompt, color=_COLOURS[1], hatch="//", label="completion")
    for row, first, second in zip(rows, prompt, completion, strict=True):
        axes.annotate(
            f"{first:.0f} + {second:.0f}",
            (first + second, row),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
        )
    _name_rows(axes, [line.name for line in lines])
    axes.set_xlim(0, 1.25 * max(map(sum, zip(prompt, completion, strict=True))))
    axes.set_xlabel("tokens")


def _draw_ranks(axes: Axes, lines: Sequence[Line]) -> None:
    step = 0.8 / len(lines)
    for number, line in enumerate(lines):
        total = sum(line.ranks.values())
        places = [place + (number - (len(lines) - 1) / 2) * step for place in range(len(RANKS))]
        axes.bar(
            places,
            [100 * line.ranks[rank] / total for rank in RANKS],
            step * 0.9,
            color=_look(number)[0],
            hatch=_HATCHES[number % len(_HATCHES)],
            label=f"{_short(line.name)} ({total} questions)",
        )
    axes.set_xticks(range(len(RANKS)), RANKS)
    axes.set_xlabel("rank")
    axes.set_ylabel("questions, %")
    axes.grid(visible=False, axis="x")


# -- what they have in common ----------------------------------------------------------------------------


def _interval(axes: Axes, found: Estimate, row: float, look: tuple[str, str], label: str) -> None:
    """Draw a share with its interval."""
    colour, marker = look
    axes.plot([found.low, found.high], [row, row], "-", color=colour, lw=2, clip_on=False)
    axes.plot(found.value, row, marker, color=colour, markersize=7, label=label or None, clip_on=False)


def _look(number: int) -> tuple[str, str]:
    """Colour and marker of one of several."""
    return _COLOURS[number % len(_COLOURS)], _MARKERS[number % len(_MARKERS)]


def _show_shares(axes: Axes) -> None:
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1], ["0%", "20%", "40%", "60%", "80%", "100%"])


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    """The rows' names, the first at the top."""
    axes.set_yticks(range(len(names)), ["\n".join(textwrap.wrap(_short(name), 26)) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")


def _short(name: str) -> str:
    name = " ".join(neutral(name).split()).lstrip("_")  # a legend leaves out names that begin with _
    return f"{name[:45]}…" if len(name) > 46 else name
