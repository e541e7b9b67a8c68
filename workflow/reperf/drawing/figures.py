"""The figures of a suite: throughput, speedup and efficiency; where devices share a model, epochs.

Measured suites and published tables are drawn by the same functions, from a table with one row per
cell and these columns:

    series             the name beside a bar and at the end of a line
    system             the id that decides the colour
    topology, num_nodes, devices_per_node
    status             ok, partial, oom, failed, ...
    throughput_median, throughput_min, throughput_max    in the figure's unit; NaN: no value
    speedup, efficiency, baseline    the topology that both are against; NaN: no value
    epoch_seconds      of whole global batches; NaN: no value
    stage_memory       the most bytes of a device of each stage, with spaces between; "": no value
    shared_cpus        how many CPUs the devices share; NaN, or no such column: each has its own

A function that draws one takes such cells, its title, which says what was trained and how, and the
beginning of its subtitle, which says where the numbers are from.

Series keep the order of the rows. Nothing depends on colour alone: bars and lines carry their
names, so that the figures can be read in grey too.
"""

import textwrap
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from math import prod
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator, PercentFormatter

from reperf.config import topology_shape
from reperf.drawing.labels import repeats_of, series_of, title_of, unit_of
from reperf.drawing.palette import GRID, INK, MUTED, PAPER, colour_of
from reperf.files import whole_file
from reperf.layout import EPOCHS, FIGURE_KINDS, FIGURE_SUFFIXES
from reperf.printed import ABSENT, percent, plain_number, sharing
from reperf.published import epochs_beside, load_tables
from reperf.tables import read_summary
from reperf.text import count, printable

WIDTH = 5.0  # inches: two figures stand side by side on a desk, one fills a phone
ROW = 0.185  # inches of height per bar
GAP = 1.4  # rows between two device counts, for the heading of the second
SMALL = 7.5  # points
ONE_DEVICE = "1n1g"
SERIES = "series"  # how the ids begin of what a figure draws for a series
MARKERS = "osD^vPX<>pdh"
LONGEST_NAME = 48  # characters of a series' name that leave room for a plot
DPI = 200
HIGHEST = 32_000  # pixels; 850 bars at full resolution

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


def draw_suite(summary: Path | str, stem: Path | str) -> None:
    """Draw a suite: `stem`-throughput, -speedup and -efficiency, each as .svg and .png.

    Args:
        summary: the suite's summary.csv; nothing else decides the figures.
        stem: the path and the beginning of the files' names.
    """
    cells = read_summary(summary)
    if cells.empty:
        for kind in FIGURE_KINDS:
            save(draw_nothing(f"{kind.capitalize()}, suite {Path(stem).name}"), f"{stem}-{kind}")
        return
    _save_all(
        cells.assign(series=series_of(cells)),
        title_of(cells),
        ", ".join(filter(None, (f"suite {cells['suite'].iloc[0]}", repeats_of(cells)))),
        unit_of(cells),
        stem,
    )


def draw_published(folder: Path | str) -> None:
    """Draw every published table that has a speedup or epochs, as folder/<table id>-<kind>."""
    for table in load_tables():
        said = f"as published in the {table.report}"
        if table.epoch:
            drawn = draw_epochs(table.epochs(), table.title, f"Time of an epoch and memory, {said}")
            save(drawn, Path(folder, f"{table.id}-{EPOCHS}"))
        if table.has_speedup:
            cells = table.cells.rename(columns={"throughput": "throughput_median"})
            # Where a report prints no speedup, the one that its throughputs give takes its place.
            printed = cells["speedup_published"].fillna(cells["speedup"])
            devices = cells["num_nodes"] * cells["devices_per_node"]
            ideal = devices / cells["baseline"].map(lambda name: prod(topology_shape(name)))
            _save_all(
                cells.assign(status="ok", speedup=printed, efficiency=printed / ideal),
                table.title,
                said,
                table.unit or "",
                Path(folder, table.id),
            )


def draw_suites_epochs(summary: Path | str, stem: Path | str) -> None:
    """Draw a suite's epochs beside the published ones of the same training, as `stem`-epochs.

    Args:
        summary: the suite's summary.csv; nothing else decides the figure but what is published.
        stem: the path and the beginning of the files' names.
    """
    cells = read_summary(summary)
    subtitle = f"Time of an epoch and memory, suite {Path(stem).name}"
    if cells.empty:
        save(draw_nothing(subtitle), f"{stem}-{EPOCHS}")
        return
    cells = cells.assign(series=_shortened(series_of(cells)))
    drawn = draw_epochs(cells, title_of(cells), subtitle, epochs_beside(cells))
    save(drawn, f"{stem}-{EPOCHS}")


def draw_throughput(cells: pd.DataFrame, title: str, subtitle: str, unit: str) -> Figure:
    """Bars by device count, each with its name, its median and a whisker from minimum to maximum.

    A cell without a number shows its status instead of a bar.
    """
    cells = _drawable(cells)
    groups = cells.groupby("shape")
    cells["place"] = cells.index + GAP * groups.ngroup()
    longest = np.nanmax([0, *cells["throughput_median"], *cells["throughput_max"]])
    with the_style():
        figure, axes = _figure(
            title, f"Throughput, {subtitle}", 1.2 + ROW * (len(cells) + GAP * len(groups))
        )
        spreads = (cells["throughput_min"] < cells["throughput_max"]).any()
        whiskers = " (whiskers: minimum to maximum)" if spreads else ""
        axes.set_xlabel(f"{printable(unit)}{whiskers}")
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axes.grid(visible=False, axis="y")
        for shape, places in groups["place"]:
            heading = places.min() - 1
            axes.text(0, heading, _in_words(*shape), color=MUTED, va="center", weight="bold")
        for cell in cells.itertuples():
            _draw_bar(axes, cell)
        axes.set_yticks(cells["place"], cells["series"])
        for cell, label in zip(cells.itertuples(), axes.get_yticklabels(), strict=True):
            label.set_gid(_part(cell.series, f"name-{cell.Index}"))
        axes.set_ylim(cells["place"].max() + 0.7, -1.5)
        axes.set_xlim(0, 1.25 * longest or 1)  # room for the numbers at the ends of the bars
    return figure


def draw_speedup(cells: pd.DataFrame, title: str, subtitle: str) -> Figure:
    """Lines of speedup by device count, beside the ideal of each baseline.

    The subtitle names the baseline, as one device only if it is one; where series have different
    ones, each line's name says its own. Cells without a speedup are named below the plot.
    """
    cells = _drawable(cells)
    baselines = _baselines(cells)
    differ = len(baselines) > 1
    worlds = sorted(cells["world_size"].unique())
    edge = worlds[-1]
    least = min(baselines.values(), default=1)
    top = np.nanmax([edge / least, *cells["speedup"]])  # some are better than ideal
    with the_style():
        height = min(4.6, 2.8 + 0.25 * cells["series"].nunique())
        figure, axes = _figure(title, f"{_speedup_over(baselines)}, {subtitle}", height)
        axes.set(xlabel="devices", xlim=(0, edge), xticks=worlds)
        axes.set(ylabel="speedup", ylim=(0, top))
        axes.set_yticks([world / least for world in worlds if world >= least])
        axes.yaxis.label.set_color(MUTED)
        ends = []
        for baseline, devices in baselines.items():
            ideal = (edge, edge / devices)
            axes.plot((0, ideal[0]), (0, ideal[1]), color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
            ends.append((*ideal, f"ideal{f', over {baseline}' if differ else ''}", MUTED, ""))
        _shade_several_nodes(axes, cells)
        ends += _draw_series(axes, cells, "speedup", plain_number, several=differ)
        _name_ends(axes, ends)
        figure.supxlabel(_missing(cells), x=0.01, ha="left", fontsize=SMALL, color=MUTED)
    return figure


def draw_efficiency(cells: pd.DataFrame, title: str, subtitle: str) -> Figure:
    """Lines of efficiency by device count, which doubles from tick to tick.

    Cells without an efficiency are named below the plot.
    """
    cells = _drawable(cells)
    baselines = _baselines(cells)
    worlds = sorted(cells["world_size"].unique())
    with the_style():
        height = min(4.6, 2.8 + 0.25 * cells["series"].nunique())
        over = _speedup_over(baselines).removeprefix("Speedup")
        figure, axes = _figure(title, f"Efficiency{over}, {subtitle}", height)
        # Room for the first and the last point: no axis of logarithms begins at nothing.
        axes.set_xscale("log", base=2)
        axes.set(xlabel="devices", xlim=(worlds[0] / 1.15, worlds[-1] * 1.15))
        axes.set_xticks(worlds, [f"{world:,}" for world in worlds], minor=False)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set(ylabel="efficiency", ylim=(0, np.nanmax([1.0, *cells["efficiency"]]) * 1.04))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
        axes.yaxis.label.set_color(MUTED)
        axes.axhline(1, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        _shade_several_nodes(axes, cells)
        ends = [(axes.get_xlim()[1], 1.0, "ideal", MUTED, "")]
        ends += _draw_series(axes, cells, "efficiency", percent, several=len(baselines) > 1)
        _name_ends(axes, ends)
        missing = _missing(cells, "efficiency")
        figure.supxlabel(missing, x=0.01, ha="left", fontsize=SMALL, color=MUTED)
    return figure


def draw_epochs(
    cells: pd.DataFrame, title: str, subtitle: str, published: pd.DataFrame | None = None
) -> Figure:
    """Bars of the seconds that an epoch takes, and beside them of the memory of each stage.

    A cell without a number shows its status instead of a bar. Published ones are drawn below the
    others, with words that say so.
    """
    groups = [*_by_shape(cells)]
    if published is not None and len(published):
        groups += [(f"As published: {words}", own) for words, own in _by_shape(published)]
    rows = [(cell, _stages(cell)) for _, own in groups for cell in own.itertuples()]
    lines = len(groups) * GAP + sum(1.6 + max(1, len(stages)) for _, stages in rows)
    with the_style():
        figure = _titled(title, subtitle, 1.1 + ROW * lines)
        seconds, memory = figure.subplots(1, 2, sharey=True)
        for axes, label in (seconds, "seconds of an epoch"), (memory, "memory of a device, MiB"):
            axes.set_xlabel(label)
            axes.xaxis.set_major_locator(MaxNLocator(3, prune="upper"))
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
            axes.grid(visible=False)
            axes.spines["left"].set_visible(False)
            axes.set_yticks([])
        place = 0.0
        for words, own in groups:
            _say(seconds, place, words, color=MUTED, weight="bold")
            place += GAP
            for cell in own.itertuples():
                _say(seconds, place, cell.series, fontsize=SMALL)
                stages = _stages(cell)
                digits = "{:,.2f}" if cell.epoch_seconds < 10_000 else "{:,.0f}"
                _draw_length(seconds, cell, place + 1, cell.epoch_seconds, digits.format)
                for stage, taken in enumerate(stages or [np.nan]):
                    said = f" (stage {stage})" if len(stages) > 1 else ""
                    form = ("{:,.0f}" + said).format
                    _draw_length(memory, cell, place + 1 + stage, taken, form)
                place += 1.6 + max(1, len(stages))
        seconds.set_ylim(place, -1)
        longest = np.nanmax([0, *(cell.epoch_seconds for cell, _ in rows)])
        most = max((taken for _, stages in rows for taken in stages), default=0)
        seconds.set_xlim(0, 1.5 * longest or 1)  # room for the numbers at the ends of the bars
        memory.set_xlim(0, 1.8 * most or 1)
    return figure


def draw_nothing(subtitle: str) -> Figure:
    """The figure of a suite none of whose logs is in a cell; the subtitle says what it would be."""
    with the_style():
        figure, axes = _figure("Nothing was measured", subtitle, 1.1)
        axes.set_axis_off()
        said = "No log is in a cell. The report says of each why it is refused."
        axes.text(0, 0.5, said, color=MUTED, va="center", transform=axes.transAxes)
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


def _save_all(cells: pd.DataFrame, title: str, subtitle: str, unit: str, stem: Path | str) -> None:
    cells = cells.assign(series=_shortened(cells["series"]))
    drawn = (
        draw_throughput(cells, title, subtitle, unit),
        draw_speedup(cells, title, subtitle),
        draw_efficiency(cells, title, subtitle),
    )
    for kind, figure in zip(FIGURE_KINDS, drawn, strict=True):
        save(figure, f"{stem}-{kind}")


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
    bars are grouped by) and twin (the position of a series among those of its system).
    """
    tried = cells.groupby("series")["status"].transform(lambda all_: (all_ != "unsupported").any())
    cells = cells[tried | ~tried.any()]  # if nothing was tried, the figure shows just that
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


def _figure(title: str, subtitle: str, height: float) -> tuple[Figure, Axes]:
    """An empty figure with one plot, so many inches high."""
    figure = _titled(title, subtitle, height)
    return figure, figure.add_subplot()


def _titled(title: str, subtitle: str, height: float) -> Figure:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    lines = textwrap.wrap(printable(title), 52)
    below = 0.07 + 0.17 * len(lines)
    # The empty last line keeps the plot clear of the subtitle.
    figure.suptitle("\n".join([*lines, ""]), x=0.01, ha="left", fontsize=10, weight="bold")
    below_title: dict[str, Any] = {"va": "top", "fontsize": SMALL, "color": MUTED}
    figure.text(0.01, 1 - below / height, printable(subtitle), **below_title)
    return figure


def _baselines(cells: pd.DataFrame) -> dict[str, int]:
    """What the speedups of a figure are against: topology -> devices, the fewest first."""
    named = cells.loc[cells["speedup"].notna(), "baseline"].unique()
    devices = {name: prod(topology_shape(name)) for name in named}
    return dict(sorted(devices.items(), key=lambda item: item[1]))


def _speedup_over(baselines: Mapping[str, int]) -> str:
    """What a figure of speedup shows, such as "Speedup over 8 devices on one node (1n8g)"."""
    if not baselines:
        return "Speedup"
    if len(baselines) > 1:
        return "Speedup over the baseline named on each line"
    (baseline,) = baselines
    if baseline == ONE_DEVICE:
        return "Speedup over one device"
    nodes, each = topology_shape(baseline)
    on = "one node" if nodes == 1 else f"{nodes} nodes"
    return f"Speedup over {nodes * each} devices on {on} ({baseline})"


def _in_words(world_size: int, nodes: int, shared: str) -> str:
    """A topology as people say it: "16 devices on 2 nodes"."""
    if shared:
        return shared
    devices = count(world_size, "device")
    return f"{devices} on {nodes} nodes" if nodes > 1 else devices


def _part(series: str, part: str) -> str:
    """The id of what is drawn for a series: the report's page hides and shows a series by it."""
    return f"{SERIES}/{quote(series, safe='')}/{part}"


def _draw_bar(axes: Axes, cell: Any) -> None:  # noqa: ANN401 - pandas' named tuple
    """One row of the throughput figure: bar, whisker and number, or why there is none."""
    value, low, high = cell.throughput_median, cell.throughput_min, cell.throughput_max
    ids = {part: _part(cell.series, f"{part}-{cell.Index}") for part in ("bar", "range", "ends")}
    if pd.isna(value):
        text, end, colour = cell.status, 0, MUTED
    else:
        text, end, colour = f"{value:,.2f}", value, INK
        look = {"facecolor": colour_of(cell.system), **_hatch_of(cell)}
        axes.barh(cell.place, value, height=0.78, gid=ids["bar"], **look)
        if low < high:
            whisker: dict[str, Any] = {"color": INK, "linewidth": 1}
            below, above = cell.place - 0.2, cell.place + 0.2
            axes.hlines(cell.place, low, high, gid=ids["range"], **whisker)
            axes.vlines((low, high), below, above, gid=ids["ends"], **whisker)
            end = high
        if cell.status != "ok":
            text += f" ({cell.status})"
    _name_end(axes, end, cell.place, text, colour, gid=_part(cell.series, f"number-{cell.Index}"))


def _by_shape(cells: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The drawable cells of each topology, behind what people call it; those that could run."""
    tried = cells["status"] != "unsupported"
    for shape, own in _drawable(cells[tried | ~tried.any()]).groupby("shape"):
        yield _in_words(*shape), own


def _stages(cell: Any) -> list[float]:  # noqa: ANN401 - pandas' named tuple
    """MiB of each stage."""
    return [int(taken) / 2**20 for taken in cell.stage_memory.split()]


def _say(axes: Axes, place: float, text: str, **how: Any) -> None:  # noqa: ANN401
    """Text from the left on that needs more than one plot's width."""
    axes.text(0, place, text, va="center", **how).set_in_layout(False)


def _draw_length(
    axes: Axes,
    cell: Any,  # noqa: ANN401 - pandas' named tuple
    place: float,
    value: float,
    form: Callable[[float], str],
) -> None:
    """A bar with its number, or why there is none."""
    if pd.isna(value):
        text, colour = ABSENT if cell.status == "ok" else cell.status, MUTED
    else:
        text, colour = form(value), INK
        axes.barh(place, value, height=0.78, facecolor=colour_of(cell.system), **_hatch_of(cell))
    _name_end(axes, 0 if pd.isna(value) else value, place, text, colour)


def _hatch_of(cell: Any) -> dict[str, Any]:  # noqa: ANN401 - pandas' named tuple
    """What tells every second series of a system from the first."""
    return {"hatch": "////", "edgecolor": PAPER, "linewidth": 0} if cell.twin % 2 else {}


def _name_end(
    axes: Axes,
    end: float,
    place: float,
    text: str,
    colour: str,
    **more: Any,  # noqa: ANN401 - of axes.annotate
) -> None:
    offset: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
    axes.annotate(text, (end, place), color=colour, fontsize=SMALL, **offset, **more)


End = tuple[float, float, str, str, str]
"""x and y of a line's last point, its name, its colour and its series; "" for the ideal."""


def _draw_series(
    axes: Axes,
    cells: pd.DataFrame,
    column: str,
    said: Callable[[float], str],
    *,
    several: bool,
) -> Iterator[End]:
    """Draw a line a series; a system's second series has hollow markers.

    Args:
        column: what is drawn by device count.
        said: how a line's end says its last value.
        several: whether baselines differ, so that each line's end says its own.

    Yields:
        The lines' ends.
    """
    for position, (name, series) in enumerate(cells.groupby("series", sort=False)):
        line = series.dropna(subset=column)
        if line.empty:
            continue
        last = line.iloc[-1]
        colour = colour_of(last["system"])
        fill = PAPER if last["twin"] % 2 else colour
        finish: dict[str, Any] = {"markersize": 5.5, "markerfacecolor": fill, "linewidth": 1.6}
        finish |= {"marker": MARKERS[position % len(MARKERS)], "gid": _part(name, "line")}
        axes.plot(line["world_size"], line[column], color=colour, clip_on=False, **finish)
        over = f", over {last['baseline']}" if several else ""
        end = f"{said(last[column])}  {name}{over}"
        yield last["world_size"], last[column], end, colour, name


def _shade_several_nodes(axes: Axes, cells: pd.DataFrame) -> None:
    """Shade where the gradients cross the network: beyond the largest single node."""
    inside = cells["world_size"][cells["num_nodes"] == 1].max()
    across = cells["world_size"][cells["num_nodes"] > 1].min()
    if inside < across:
        axes.axvspan(inside, axes.get_xlim()[1], color=GRID, alpha=0.35, linewidth=0)
        offset: dict[str, Any] = {"xytext": (4, 5), "textcoords": "offset points"}
        axes.annotate("several nodes", (inside, 0), color=MUTED, fontsize=SMALL, **offset)


def _name_ends(axes: Axes, ends: Iterable[End]) -> None:
    """Name each line to the right of the plot, as close to its end's height as the others allow."""
    ends = sorted(ends, key=lambda end: -end[1])
    if not ends:
        return
    (left, right), top = axes.get_xlim(), axes.get_ylim()[1]
    beyond = 1.08 * right if axes.get_xscale() == "linear" else right * (right / left) ** 0.08
    # Names one line apart and closest to their ends: a regression on falling heights.
    figure = axes.get_figure(root=True)
    assert figure
    line = top * 0.17 / (figure.get_figheight() - 1.2)  # the height of a name
    gaps = np.arange(len(ends)) * line
    heights = _falling(np.array([y for _, y, *_ in ends]) + gaps) - gaps
    for end, height in zip(ends, np.minimum(heights, top - gaps), strict=True):
        x, y, name, colour, series = end
        leader: dict[str, Any] = {"arrowstyle": "-", "color": colour, "linewidth": 0.7}
        leader |= {"relpos": (0, 0.5), "shrinkA": 0, "shrinkB": 4}
        leader["gid"] = series and _part(series, "leader")
        axes.annotate(
            name,
            xy=(x, y),
            xytext=(beyond, height),
            va="center",
            arrowprops=leader,
            annotation_clip=False,
            gid=series and _part(series, "end"),
        )


def _falling(heights: np.ndarray) -> np.ndarray:
    """The falling heights that are closest to these."""
    if len(heights) < 2:
        return heights
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 - as slow as the rest

    return isotonic_regression(heights, increasing=False).x


def _missing(cells: pd.DataFrame, column: str = "speedup") -> str:
    """The cells that a figure of a column has no point for, by series and status."""
    missing = cells[cells[column].isna()]
    measured = (missing["status"] == "ok") & (missing["shared"] != "")
    missing = missing.assign(status=missing["status"].mask(measured, missing["shared"]))
    told = [
        f"{series} on {', '.join(group['topology'])} ({status})"
        for (series, status), group in missing.groupby(["series", "status"], sort=False)
    ]
    return textwrap.fill(f"No {column}: {'; '.join(told)}", 85) if told else ""
