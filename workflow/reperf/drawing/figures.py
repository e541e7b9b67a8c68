"""The figures of a suite: throughput, scaling, steps, costs; if devices share a model, epochs.

Measured suites and published tables are drawn by the same functions, from a table with one row per
cell and these columns:

    series             the name beside a bar and above a plot
    system             the id that decides the colour
    topology, num_nodes, devices_per_node
    status             ok, partial, oom, failed, ...
    throughput_median, throughput_min, throughput_max    in the figure's unit; NaN: no value
    speedup, efficiency, baseline    the topology that both are against; NaN: no value
    epoch_seconds      of whole global batches; NaN: no value
    stage_memory       the most bytes of a device of each stage, with spaces between; "": no value

and, where they are known:

    device             cuda or cpu
    shared_cpus        how many CPUs the devices share; NaN: each has its own
    runs               the throughputs of the repeats
    steps              of each repeat that has them, its Steps
    marks, doubtful, scattered   what to know before reading its number; whether that is doubtful,
                       and whether it has no speedup

A function that draws one takes such cells, its title, which says what they show, and its subtitle,
which says where the numbers are from. Nothing depends on colour alone: bars and plots carry their
names, so that the figures can be read in grey too.
"""

import textwrap
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise, zip_longest
from math import prod
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator, NullLocator, PercentFormatter

from reperf.config import topology_shape
from reperf.drawing.labels import place_of, repeats_of, series_of, title_of, unit_of
from reperf.drawing.palette import GRID, INK, MUTED, PAPER, colour_of
from reperf.drawing.panels import (
    Row,
    cell_of,
    entries_of,
    finding,
    panels,
    step_times_of,
    topology_in_words,
)
from reperf.files import whole_file
from reperf.layout import EPOCHS, FIGURE_KINDS, FIGURE_SUFFIXES, PUBLISHED_KINDS
from reperf.measuring.marks import NOT_USABLE
from reperf.number_format import ABSENT, in_four_digits, percent, plain_number, sharing
from reperf.published import epochs_beside, load_tables
from reperf.tables import read_measurements, read_summary
from reperf.text import printable

WIDTH = 5.0  # inches: two figures stand side by side on a desk, one fills a phone
ROW = 0.2  # inches of height per bar
GAP = 2.2  # rows between the bars of two device counts: a scale, and a heading
ROOM = 1.45  # widths of a plot over its greatest number
SMALL = 7.5  # points
PLOTS_ACROSS = 3
ONE_DEVICE = "1n1g"
LONGEST_NAME = 48  # characters of a series' name that leave room for a plot
NAME, LABEL = 26, 40  # characters of a line beside a bar and at its end, which leave room for it
DPI = 200
HIGHEST = 32_000  # pixels; 850 bars at full resolution
WRITTEN = {"speedup": plain_number, "efficiency": percent}
MOST_PLOTS = 12
"""Small plots of step times, at most, that show all device counts; else the most devices are."""
STEADY, DRIFT = 0.1, 0.05
"""How far a step may be from its run's median, and one half of a window from the other, to be
called steady."""
COSTS = {
    "energy": ("joules_per_sample", 1, "J per sample", "not metered"),
    "utilisation": ("flop_utilisation", 100, "% of what matrix products reach", "unknown"),
}
"""Kind of figure -> column of summary.csv, factor, unit, what stands where it has no number."""

STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": GRID,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": MUTED,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": PAPER,
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 8.5,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "hatch.linewidth": 1.2,
    "svg.fonttype": "path",
    "svg.hashsalt": "reperf",  # without it, ids in the file are random
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a name is just that
    "xtick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.color": INK,
    "ytick.major.size": 0,
}
# A user's own matplotlibrc changes nothing: equal numbers give equal bytes.
the_style = partial(style.context, ["default", STYLE])


class Steps(NamedTuple):
    """How long the iterations of a run took."""

    iterations: tuple[int, ...]  # the last one of each printed stretch
    ms: tuple[float, ...]  # milliseconds an iteration, the mean of its stretch
    window: tuple[int, int]  # between which iterations the run was measured

    @property
    def measured(self) -> list[float]:
        """Those within the window."""
        first, last = self.window
        pairs = zip(self.iterations, self.ms, strict=True)
        return [ms for iteration, ms in pairs if first < iteration <= last]


def draw_suite(
    measurements: Path | str,
    summary: Path | str,
    stem: Path | str,
    kinds: Iterable[str] = FIGURE_KINDS,
) -> None:
    """Draw a suite: a figure of each kind as `stem`-<kind>.svg and .png.

    Args:
        measurements, summary: the suite's tables; nothing else decides the figures.
        stem: the path and the beginning of the files' names.
    """
    cells, runs = read_summary(summary), read_measurements(measurements)
    for kind in kinds:
        nothing = f"{kind.capitalize()}, suite {Path(stem).name}"
        drawn = draw_nothing(nothing) if cells.empty else draw_kind(kind, cells, runs)
        save(drawn, f"{stem}-{kind}")


def draw_kind(kind: str, cells: pd.DataFrame, measurements: pd.DataFrame | None = None) -> Figure:
    """One figure of a suite, whose title says what it shows.

    Args:
        measurements: its rows of measurements.csv. Without them there are no dots of repeats, and
            the title names the suite alone.
    """
    title, unit = title_of(cells), unit_of(cells)
    origin = f"suite {cells['suite'].iloc[0]}", repeats_of(cells), place_of(cells)
    subtitle = ", ".join(filter(None, (title, *origin)))
    entries = entries_of(cells, measurements)
    cells = cells.assign(
        series=_shortened(series_of(cells)),
        runs=[entry.throughputs for entry in entries],
        marks=[", ".join(mark.partition(":")[0] for mark in entry.marks) for entry in entries],
        doubtful=[entry.doubtful for entry in entries],
        scattered=[entry.scattered for entry in entries],
    )
    if kind == "throughput":
        found = title if measurements is None else finding(panels(entries))
        return draw_throughput(cells, found, subtitle, unit)
    if kind == "steps":
        return draw_steps(cells.assign(steps=steps_of(cells, measurements)), subtitle)
    if kind in COSTS:
        return draw_cost(kind, cells, subtitle)
    return draw_scaling(kind, cells, subtitle)


def steps_of(cells: pd.DataFrame, measurements: pd.DataFrame | None) -> list[list[Steps]]:
    """The step times of the runs of each cell, by rows of measurements.csv and summary.csv."""
    runs = defaultdict(list)
    for run in () if measurements is None else measurements.itertuples():
        if len(pairs := step_times_of(run)) > 1:
            iterations, ms = zip(*pairs, strict=True)
            steps = Steps((*map(int, iterations),), (*map(float, ms),), (run.first, run.last))
            runs[cell_of(run)].append(steps)
    return [runs[cell_of(cell)] for cell in cells.itertuples()]


def draw_published(folder: Path | str) -> None:
    """Draw every published table that has a speedup or epochs, as folder/<table id>-<kind>."""
    for table in load_tables():
        source = f"published in the {table.report}"
        if table.epoch:
            drawn = draw_epochs(
                table.epochs(), table.title, f"Time of an epoch and memory, as {source}"
            )
            save(drawn, Path(folder, f"{table.id}-{EPOCHS}"))
        if table.has_speedup:
            cells = table.cells.rename(columns={"throughput": "throughput_median"})
            # Where a report prints no speedup, the one that its throughputs give takes its place.
            printed = cells["speedup_published"].fillna(cells["speedup"])
            devices = cells["num_nodes"] * cells["devices_per_node"]
            ideal = devices / cells["baseline"].map(lambda name: prod(topology_shape(name)))
            cells = cells.assign(status="ok", speedup=printed, efficiency=printed / ideal)
            cells = cells.assign(series=_shortened(cells["series"]))
            from_there = f"{table.title}, as {source}"
            figures = (
                draw_throughput(cells, table.title, f"As {source}", table.unit or ""),
                draw_scaling("speedup", cells, from_there),
                draw_scaling("efficiency", cells, from_there),
            )
            for kind, figure in zip(PUBLISHED_KINDS, figures, strict=True):
                save(figure, Path(folder, f"{table.id}-{kind}"))


def draw_suites_epochs(summary: Path | str, stem: Path | str) -> None:
    """Draw a suite's epochs beside the published ones of the same training, as `stem`-epochs.

    Args:
        summary: the suite's summary.csv; nothing else decides the figure but what is published.
    """
    cells = read_summary(summary)
    subtitle = f"Time of an epoch and memory, suite {Path(stem).name}"
    if cells.empty:
        drawn = draw_nothing(subtitle)
    else:
        named = cells.assign(series=_shortened(series_of(cells)))
        drawn = draw_epochs(named, title_of(cells), subtitle, epochs_beside(cells))
    save(drawn, f"{stem}-{EPOCHS}")


def draw_throughput(
    cells: pd.DataFrame, title: str, subtitle: str, unit: str, what: str = "Throughput"
) -> Figure:
    """Bars by device count, each group with a scale of its own and its best cell on top.

    The number stands where its bar ends, at the median; dots are repeats, and a line reaches from
    the least to the greatest. A cell without a number shows its status instead of a bar; a marked
    one is pale, and its mark stands beside its number.
    """
    cells = _drawable(cells)
    cells = cells.assign(label=[_end_of(cell) for cell in cells.itertuples()])
    rates = unit.endswith("/s") or not unit or unit.startswith("%")
    ranked = cells.sort_values("throughput_median", ascending=not rates, kind="stable")
    dots = "; a dot is a repeat" if any(map(len, cells["runs"])) else ""
    groups = [(_in_words(own), own) for _, own in ranked.groupby("shape")]
    return _draw_bars(groups, title, f"{what}. {subtitle}", f"{printable(unit)}{dots}")


def draw_scaling(column: str, cells: pd.DataFrame, subtitle: str) -> Figure:
    """A small plot a series, the best first: its speedup or efficiency by device count.

    The others are grey. Both axes of a speedup double from tick to tick, so that the ideal beside
    it is a straight line. Cells without a value, or whose repeats scatter too much for one, are
    named in their plot.
    """
    found = _range_found(cells, column, column.capitalize(), WRITTEN[column])
    cells = _drawable(cells)
    cells[column] = cells[column].mask(cells["scattered"].astype(bool))
    last = cells.dropna(subset=column).groupby("series")[column].last()
    names = sorted(cells["series"].unique(), key=lambda name: -last.get(name, -np.inf))
    across = min(PLOTS_ACROSS, max(2, len(names)))
    down = -(-len(names) // across)
    worlds = sorted(cells["world_size"].unique())
    what = "Speedup" if column == "speedup" else "Share of the ideal speedup"
    baselines = list(cells.loc[cells[column].notna(), "baseline"].unique())
    with the_style():
        figure = _titled(found, f"{what}{_over(baselines)}. {subtitle}", 0.3 + 1.5 * down)
        grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
        for axes, name in zip_longest(grid.flat, names):
            if name is None:
                axes.set_axis_off()
                continue
            for other, line in cells.dropna(subset=column).groupby("series"):
                if other != name:
                    axes.plot(line["world_size"], line[column], color=GRID, linewidth=1)
            own = cells[cells["series"] == name]
            _draw_line(axes, own, column, np.array(worlds), several=len(baselines) > 1)
        axes = grid[0, 0]
        axes.set_xscale("log", base=2)
        axes.set_xlim(worlds[0] / 1.2, worlds[-1] * 1.2)
        axes.set_xticks(worlds, [f"{world:,}" for world in worlds], minor=False)
        axes.xaxis.set_minor_locator(NullLocator())
        if column == "speedup":
            axes.set_yscale("log", base=2)
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        else:
            axes.set_ylim(0, np.nanmax([1.0, *cells[column]]) * 1.08)
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
        shaded = [_shade_several_nodes(axes, cells) for axes in grid.flat[: len(names)]]
        where = "; shaded: several nodes" if any(shaded) else ""
        figure.supxlabel(f"devices; dashed: the ideal{where}", fontsize=SMALL, color=MUTED)
    return figure


def draw_cost(kind: str, cells: pd.DataFrame, subtitle: str) -> Figure:
    """Draw one of the COSTS of a sample as bars, in the style of the throughput figure."""
    column, factor, unit, none = COSTS[kind]
    numbers = factor * cells[column]
    if numbers.isna().all():
        why = (
            "No run has a record of its power."
            if kind == "energy"
            else ("What a sample costs, or what the device's matrix products reach, is not known.")
        )
        return draw_nothing(f"{kind.capitalize()}. {subtitle}", why)
    lacks = numbers.isna() & cells["throughput_median"].notna()
    same = {f"throughput_{name}": numbers for name in ("median", "min", "max")}
    cells = cells.assign(**same, runs=[()] * len(cells), status=cells["status"].mask(lacks, none))
    write = (lambda value: f"{in_four_digits(value)} J") if kind == "energy" else "{:.1f} %".format
    what = {"energy": "Energy per sample", "utilisation": "FLOP utilisation"}[kind]
    found = _range_found(cells, "throughput_median", what, write, least_first=kind == "energy")
    return draw_throughput(cells, found, subtitle, unit, what)


def draw_steps(cells: pd.DataFrame, subtitle: str) -> Figure:
    """A small plot a cell: how long its steps took over the iterations, a line a run.

    The measured window is shaded. Each plot has a scale of its own, around what was measured: a
    warm-up that leaves it is named in the plot's corner.
    """
    cells = _drawable(cells)
    cells = cells[cells["steps"].map(len) > 0]
    if cells.empty:
        return draw_nothing(f"Step times. {subtitle}", "No log prints the time of several steps.")
    shown: list[Row] = []
    for _, own in [*cells.groupby("shape")][::-1]:
        if shown and len(shown) + len(own) > MOST_PLOTS:
            break
        shown = [*own.itertuples(), *shown]
    strides = {b - a for cell in shown for run in cell.steps for a, b in pairwise(run.iterations)}
    each = f", each point the mean of {' to '.join(map(str, sorted({min(strides), max(strides)})))}"
    what = f"Milliseconds of a step, a line for each run{each if max(strides) > 1 else ''}"
    down = -(-len(shown) // PLOTS_ACROSS)
    with the_style():
        figure = _titled(_steps_found(shown), f"{what}. {subtitle}", 0.3 + 1.3 * down)
        grid = figure.subplots(down, min(PLOTS_ACROSS, max(2, len(shown))), squeeze=False)
        for axes, cell in zip_longest(grid.flat, shown):
            if cell is None:
                axes.set_axis_off()
            else:
                _draw_steps_of(axes, cell)
        figure.supxlabel("iteration; shaded: the measured window", fontsize=SMALL, color=MUTED)
    return figure


def draw_epochs(
    cells: pd.DataFrame, title: str, subtitle: str, published: pd.DataFrame | None = None
) -> Figure:
    """Bars of the seconds that an epoch takes, and below them of the memory of each stage.

    A cell without a number shows its status instead of a bar. Published ones are drawn below the
    others, with words that say so.
    """
    groups = list(_epochs_and_memory(cells, ""))
    if published is not None and len(published):
        groups += _epochs_and_memory(published, "As published: ")
    return _draw_bars(groups, title, subtitle, "seconds of an epoch; MiB of a device")


def draw_nothing(
    subtitle: str, why: str = "No log is in a cell. The report says of each why it is refused."
) -> Figure:
    """The figure of a suite that has nothing to show; the subtitle says what it would be."""
    with the_style():
        figure = _titled("Nothing was measured", subtitle, 0.6)
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.text(0, 0.5, why, color=MUTED, va="center", transform=axes.transAxes)
    return figure


def save(figure: Figure, path: Path | str) -> None:
    """Write a figure as `path`.svg and `path`.png, the same bytes for the same figure.

    Raises:
        ReperfError: a file cannot be written.
    """
    dpi = min(DPI, HIGHEST / figure.get_figheight())
    # No date, no maker: the same figure gives the same bytes.
    options: dict[str, dict[str, Any]] = {
        "svg": {"metadata": {"Date": None, "Creator": None}},
        "png": {"metadata": {"Software": None}, "dpi": dpi},
    }
    with the_style(), warnings.catch_warnings():
        # Letters that the font lacks are drawn as boxes.
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        for suffix in FIGURE_SUFFIXES:
            with whole_file(f"{path}.{suffix}", "wb") as stream:
                figure.savefig(stream, format=suffix, **options[suffix])


def _shortened(series: pd.Series) -> pd.Series:
    """The names, long ones without their middle; different ones stay different."""
    half = LONGEST_NAME // 2
    short: dict[str, str] = {}
    times: Counter[str] = Counter()
    for name in series.unique():
        fits = name if len(name) <= LONGEST_NAME else f"{name[:half]}…{name[1 - half :]}"
        times[fits] += 1
        short[name] = fits if times[fits] == 1 else f"{fits} ({times[fits]})"
    return series.map(short)


def _drawable(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells of the series that were tried, smallest topology first, their words printable.

    Adds world_size (number of devices), shared (which CPUs they share, in words), shape (what the
    bars are grouped by) and twin (the position of a series among those of its system); and, where
    there are none, runs (the throughputs of the repeats), marks, doubtful and scattered.
    """
    tried = cells.groupby("series")["status"].transform(lambda all_: (all_ != "unsupported").any())
    cells = cells[tried | ~tried.any()]  # if nothing was tried, the figure shows just that
    plain: dict[str, Any] = {"runs": [()] * len(cells), "marks": "", "device": ""}
    plain |= {"doubtful": False, "scattered": False}
    cells = cells.assign(**{name: plain[name] for name in plain if name not in cells})
    sizes = cells[["num_nodes", "devices_per_node"]].astype(int)
    world_size = sizes.prod(axis="columns")
    shared = [sharing(cell) for cell in cells.itertuples()]
    shown = {name: cells[name].map(printable) for name in ("series", "topology", "status")}
    return cells.assign(
        **shown,
        world_size=world_size,
        shared=shared,
        shape=[*zip(world_size, sizes["num_nodes"], shared, strict=True)],
        twin=cells.groupby("system")["series"].transform(lambda names: pd.factorize(names)[0]),
    ).sort_values("shape", kind="stable", ignore_index=True)


def _titled(title: str, subtitle: str, height: float) -> Figure:
    """An empty figure with its title and subtitle, and so many inches below them."""
    lines, below = textwrap.wrap(printable(title), 54), textwrap.wrap(printable(subtitle), 92)
    head = 0.1 + 0.17 * len(lines)
    height += head + 0.13 * len(below)
    above = (head + 0.13 * len(below)) / height
    layout = ConstrainedLayoutEngine(rect=(0, 0, 1, 1 - above))
    figure = Figure(figsize=(WIDTH, height), layout=layout)
    how: dict[str, Any] = {"va": "top", "ha": "left"}
    figure.text(0.01, 1 - 0.04 / height, "\n".join(lines), fontsize=10, weight="bold", **how)
    how |= {"fontsize": SMALL - 0.5, "color": MUTED}
    figure.text(0.01, 1 - head / height, "\n".join(below), **how)
    return figure


def _range_found(
    cells: pd.DataFrame,
    column: str,
    what: str,
    write: Callable[[float], str],
    *,
    least_first: bool = False,
) -> str:
    """The best and the worst of a column, on the most devices that have a value of it.

    The speedup and the efficiency of a baseline are 1 by definition: they are no finding.
    """
    known = _drawable(cells).dropna(subset=column)
    if column in WRITTEN:
        scales = known[known["topology"] != known["baseline"]]
        known = scales[~scales["scattered"].astype(bool)]
        if known.empty:
            why = ": the repeats scatter too much" if len(scales) else ""
            return f"No {column} beyond the baseline{why}"
    largest = known[known["shape"] == known["shape"].max()]
    largest = largest.sort_values(column, ascending=least_first)
    if largest["marks"].str.contains(NOT_USABLE).any():
        return f"{what}: the numbers are not usable"
    best, worst = largest.iloc[0], largest.iloc[-1]
    found = f"{what} on {_in_words(largest)}: {write(best[column])} ({best['series']})"
    return found if len(largest) == 1 else f"{found} to {write(worst[column])} ({worst['series']})"


def _steps_found(cells: Sequence[Row]) -> str:
    """What the step times of some cells say: who drifts, or whose steps stand out, or neither."""
    if any(NOT_USABLE in cell.marks for cell in cells):
        return "Step times: the numbers are not usable"
    drifts, spreads = [(0.0, cells[0])], [(0.0, cells[0])]
    for cell in cells:
        for run in cell.steps:
            measured = run.measured or [1.0]
            half, middle = len(measured) // 2, median(measured)
            if half > 1:
                later, before = median(measured[-half:]), median(measured[:half])
                drifts.append((later / before - 1, cell))
            spreads += [(ms / middle - 1, cell) for ms in measured]
    drift, spread = (max(found, key=lambda one: abs(one[0])) for found in (drifts, spreads))

    def where(cell: Row) -> str:
        return f"{cell.series} on {_size(cell)}"

    if abs(drift[0]) > DRIFT:
        how = "slows down" if drift[0] > 0 else "gets faster"
        return f"{where(drift[1])} {how} by {percent(abs(drift[0]))} within a window"
    if abs(spread[0]) > STEADY:
        of = f"{percent(abs(spread[0]))} {'above' if spread[0] > 0 else 'below'} its run's median"
        return f"Steps are uneven: one of {where(spread[1])} is {of}"
    return f"Steps are steady: none is more than {percent(abs(spread[0]))} from its run's median"


def _draw_steps_of(axes: Axes, cell: Row) -> None:
    """The step times of one cell's runs."""
    measured = [ms for run in cell.steps for ms in run.measured] or list(cell.steps[0].ms)
    middle = median(measured)
    low, high = min(*measured, 0.9 * middle), max(*measured, 1.1 * middle)
    for window in {run.window for run in cell.steps}:
        axes.axvspan(*window, color=GRID, alpha=0.35, linewidth=0)
    for run in cell.steps:
        look: dict[str, Any] = {"linewidth": 0.9, "marker": "o", "markersize": 1.6, "alpha": 0.8}
        axes.plot(run.iterations, run.ms, color=colour_of(cell.system), **look)
    margin = 0.08 * (high - low)
    axes.set_ylim(low - margin, high + 2 * margin)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.tick_params(labelsize=6)
    where = f"{_size(cell)}: {in_four_digits(middle)} ms"
    axes.set_title("\n".join(map(_wrapped, (cell.series, where))), loc="left", fontsize=SMALL)
    above = max(ms for run in cell.steps for ms in run.ms)
    if above > high:
        note = f"off the scale: up to {in_four_digits(above)} ms"
        corner: dict[str, Any] = {"ha": "right", "va": "top", "transform": axes.transAxes}
        axes.text(0.97, 0.97, note, fontsize=6, color=MUTED, **corner)


def _size(cell: Row) -> str:
    """How many devices a cell has, for headings that have no room for its nodes."""
    return topology_in_words(cell).partition(" on ")[0]


def _wrapped(text: str) -> str:
    """A text in at most two lines above a small plot."""
    return "\n".join(textwrap.wrap(text, 26, max_lines=2, placeholder="…"))


def _in_words(cells: pd.DataFrame) -> str:
    """The one topology of some cells, as people say it."""
    return topology_in_words(next(cells.itertuples()))


def _draw_bars(
    groups: Sequence[tuple[str, pd.DataFrame]], title: str, subtitle: str, label: str
) -> Figure:
    """Groups of bars below their headings; each first row is on top."""
    groups = [
        (
            heading,
            own.assign(
                name=own["series"].map(partial(textwrap.fill, width=NAME)),
                label=own["label"].map(partial(textwrap.fill, width=LABEL)),
            ),
        )
        for heading, own in groups
    ]
    lines = [len(own) + GAP for _, own in groups]
    tall = 1 + max(text.count("\n") for _, own in groups for text in [*own["name"], *own["label"]])
    with the_style():
        figure = _titled(title, subtitle, ROW * (0.4 + 0.6 * tall) * sum(lines) + 0.3)
        plots = figure.subplots(len(groups), height_ratios=lines, squeeze=False)[:, 0]
        for axes, (heading, own) in zip(plots, groups, strict=True):
            _draw_group(axes, heading, own)
        plots[-1].set_xlabel(label, fontsize=SMALL)
    return figure


def _draw_group(axes: Axes, heading: str, cells: pd.DataFrame) -> None:
    """One group, with a scale of its own."""
    greatest = np.nanmax([0, *cells["throughput_median"], *cells["throughput_max"]])
    axes.set_title(heading, loc="left", fontsize=SMALL, color=MUTED, weight="bold")
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.tick_params(axis="x", labelsize=6)
    axes.grid(visible=False, axis="y")
    for place, cell in enumerate(cells.itertuples()):
        _draw_bar(axes, place, cell, greatest)
    axes.set_yticks(range(len(cells)), cells["name"])
    axes.set_ylim(len(cells) - 0.4, -0.6)
    axes.set_xlim(0, ROOM * greatest or 1)  # room for the numbers at the ends of the bars


def _draw_bar(axes: Axes, place: int, cell: Row, greatest: float) -> None:
    """One row of the throughput figure: bar, dots and number, or why there is none."""
    value, low, high = cell.throughput_median, cell.throughput_min, cell.throughput_max
    if pd.isna(value):
        _name_end(axes, 0, place, cell.label, MUTED)
        return
    pale = 0.4 if cell.doubtful else 1
    look: dict[str, Any] = {"facecolor": colour_of(cell.system), "alpha": pale}
    if cell.twin % 2:  # every second series of a system
        look |= {"hatch": "////", "edgecolor": PAPER, "linewidth": 0}
    axes.barh(place, value, height=0.74, **look)
    # Where repeats lie farther to the right than the median, its number keeps above them.
    beyond = high - value > 0.01 * greatest
    if low < high:
        line = place + 0.24 if beyond else place
        axes.hlines(line, low, high, color=INK, linewidth=0.7)
        dots: dict[str, Any] = {"s": 7, "facecolor": INK, "edgecolor": PAPER, "linewidth": 0.4}
        axes.scatter(cell.runs, [line] * len(cell.runs), zorder=3, **dots)
    _name_end(axes, value if beyond else max(value, high), place - 0.18 * beyond, cell.label, INK)


def _end_of(cell: Row) -> str:
    """The text at the end of a bar: the number and its marks, or why there is no number."""
    if pd.isna(cell.throughput_median):
        return str(cell.status)
    remarks = [cell.status] * (cell.status != "ok") + [cell.marks] * bool(cell.marks)
    number = in_four_digits(cell.throughput_median)
    return f"{number} ({', '.join(remarks)})" if remarks else number


def _draw_line(
    axes: Axes, cells: pd.DataFrame, column: str, worlds: np.ndarray, *, several: bool
) -> None:
    """The small plot of one series, beside its ideal; its marks and gaps stand at its foot.

    Args:
        worlds: the device counts of all series.
        several: whether series have different baselines, so that each plot names its own.
    """
    first, line = cells.iloc[0], cells.dropna(subset=column)
    heading = [_wrapped(first["series"])]
    if len(line):
        baseline = line["baseline"].iloc[0]
        devices = prod(topology_shape(baseline)) if baseline else 1
        worlds = worlds[worlds >= devices]
        ideal = worlds / devices if column == "speedup" else np.ones(len(worlds))
        axes.plot(worlds, ideal, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
        colour = colour_of(first["system"])
        look: dict[str, Any] = {"marker": "o", "markersize": 4, "linewidth": 1.6, "zorder": 3}
        look["markerfacecolor"] = PAPER if first["twin"] % 2 else colour
        axes.plot(line["world_size"], line[column], color=colour, **look)
        last = WRITTEN[column](line[column].iloc[-1])
        heading.append(f"{last}{f' over {baseline}' if several else ''}")
    axes.set_title("\n".join(heading), loc="left", fontsize=SMALL)
    status = cells["status"].where(cells["status"] != "ok", cells["shared"])
    lacks = cells[column].isna() & ~cells["scattered"].astype(bool)
    remarks = cells["marks"].mask(lacks, status.replace("", "none"))
    notes = [
        textwrap.fill(f"on {', '.join(map(str, own['world_size']))}: {remark}", 28)
        for remark, own in cells.groupby(remarks, sort=False)
        if remark
    ]
    foot: dict[str, Any] = {"transform": axes.transAxes, "fontsize": 6, "color": MUTED}
    axes.text(0.97, 0.04, "\n".join(notes), ha="right", va="bottom", **foot)


def _over(baselines: Sequence[str]) -> str:
    """What the speedups of a figure are against: " over one device", " over 1n8g"."""
    if len(baselines) > 1:
        return " over the baseline that each plot names"
    return "".join(f" over {'one device' if one == ONE_DEVICE else one}" for one in baselines)


def _epochs_and_memory(cells: pd.DataFrame, before: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Of each topology that could run, a group of its epochs and one of its stages' memory."""
    tried = cells["status"] != "unsupported"
    for _, own in _drawable(cells[tried | ~tried.any()]).groupby("shape"):
        words = f"{before}{_in_words(own)}"
        digits = ["{:,.2f}" if value < 10_000 else "{:,.0f}" for value in own["epoch_seconds"]]
        yield f"{words}: an epoch", _with_numbers(own, own["epoch_seconds"], digits)
        stages = own.assign(stage_memory=own["stage_memory"].str.split()).explode("stage_memory")
        several = stages.index.duplicated(keep=False)
        forms = [
            f"{{:,.0f}} (stage {stage})" if shared else "{:,.0f}"
            for stage, shared in zip(stages.groupby(level=0).cumcount(), several, strict=True)
        ]
        taken = stages["stage_memory"].astype(float) / 2**20
        yield f"{words}: memory of each stage", _with_numbers(stages, taken, forms)


def _with_numbers(cells: pd.DataFrame, numbers: pd.Series, forms: Sequence[str]) -> pd.DataFrame:
    """The cells with other numbers to draw, each written in a form of its own."""
    absent = cells["status"].replace("ok", ABSENT)
    labels = [
        instead if pd.isna(value) else form.format(value)
        for value, form, instead in zip(numbers, forms, absent, strict=True)
    ]
    same = {f"throughput_{name}": numbers for name in ("median", "min", "max")}
    return cells.assign(**same, label=labels, runs=[()] * len(cells), doubtful=False)


def _name_end(axes: Axes, end: float, place: float, text: str, colour: str) -> None:
    offset: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
    axes.annotate(text, (end, place), color=colour, fontsize=SMALL, **offset)


def _shade_several_nodes(axes: Axes, cells: pd.DataFrame) -> bool:
    """Shade where gradients cross the network, if they do: beyond the largest single node."""
    inside = cells["world_size"][cells["num_nodes"] == 1].max()
    across = cells["world_size"][cells["num_nodes"] > 1].min()
    if inside < across:
        axes.axvspan(inside, axes.get_xlim()[1], color=GRID, alpha=0.35, linewidth=0)
    return bool(inside < across)
