"""What a figure shows, and that equal numbers give equal bytes."""

import os
import re
import subprocess
import sys
import textwrap
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import skimage
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image
from reperf.drawing import figures
from reperf.drawing.figures import (
    LONGEST_NAME,
    MOST_PLOTS,
    NAME,
    ROOM,
    Steps,
    _shortened,
    draw_cost,
    draw_epochs,
    draw_published,
    draw_scaling,
    draw_steps,
    draw_suite,
    draw_throughput,
    save,
)
from reperf.drawing.labels import repeats_of, series_of, title_of
from reperf.drawing.palette import colour_of
from reperf.systems import load_systems
from reperf.tables import MEASUREMENTS, SUMMARY, write_table
from reperf.text import printable

NAN = float("nan")

# How a protanope and a deuteranope see linear RGB. Source: G. M. Machado, M. M. Oliveira and
# L. A. F. Fernandes, A Physiologically-based Model for Simulation of Color Vision Deficiency, 2009.
PROTANOPE = [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]]
DEUTERANOPE = [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9690]]


def cell(series="PyTorch", system="pytorch", nodes=1, devices=1, median=NAN, **changes) -> dict:
    shape = {"topology": f"{nodes}n{devices}g", "num_nodes": nodes, "devices_per_node": devices}
    row = {"series": series, "system": system, "status": "ok", "speedup": NAN, "baseline": "1n1g"}
    row |= dict.fromkeys([f"throughput_{name}" for name in ("median", "min", "max")], median)
    row |= shape | changes
    return row | {"efficiency": row["speedup"] / (nodes * devices)}


@pytest.fixture
def cells() -> pd.DataFrame:
    """Two systems on up to 16 devices; the second runs out of memory on the most."""
    return pd.DataFrame(
        [
            cell(median=10.0, throughput_min=9.0, throughput_max=12.0, speedup=1.0),
            cell(devices=8, median=75.0, speedup=7.5, status="partial"),
            cell(nodes=2, devices=8, median=140.0, speedup=14.0),
            cell("MXNet", "mxnet", median=20.0, speedup=1.0),
            cell("MXNet", "mxnet", devices=8, median=120.0, speedup=6.0),
            cell("MXNet", "mxnet", nodes=2, devices=8, status="oom"),
            cell("OneFlow", "oneflow", status="unsupported"),
        ]
    )


def throughput(cells: pd.DataFrame) -> Figure:
    return draw_throughput(cells, "title", "suite", "images/s")


def speedup(*cells: dict) -> Figure:
    return draw_scaling("speedup", pd.DataFrame(cells), "suite")


def texts(figure: Figure) -> list[str]:
    """The names and numbers in the plot, and what stands around it."""
    said = [label.get_text() for axes in figure.axes for label in axes.get_yticklabels()]
    for axes in figure.axes:
        said += [axes.get_title(loc="left"), *(text.get_text() for text in axes.texts)]
    return said + [text.get_text() for text in figure.texts]


def points(figure: Figure, plot: int = 0) -> list[list[list[float]]]:
    """The points of the last two lines of a plot: the ideal, and the series' own."""
    return [line.get_xydata().tolist() for line in figure.axes[plot].lines[-2:]]


def bars(figure: Figure) -> list[float]:
    """The bars' lengths, from top to bottom."""
    return [bar.get_width() for axes in figure.axes for bar in axes.patches]


def overlapping(figure: Figure) -> list[Any]:
    """Pairs of words of which one covers the other; an annotation's leader is no word."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    words = [text for axes in figure.axes for text in axes.texts]
    boxes = [Text.get_window_extent(text, canvas.get_renderer()) for text in words]
    assert max(box.x1 for box in boxes) <= figure.bbox.x1
    return [(a, b) for a, b in combinations(boxes, 2) if a.overlaps(b)]


def test_bars_are_sorted_in_groups_by_device_count_each_with_its_own_scale(cells):
    figure = throughput(cells)
    assert bars(figure) == [20, 10, 120, 75, 140]  # none for what has no number
    names = [[label.get_text() for label in axes.get_yticklabels()] for axes in figure.axes]
    assert names == [["MXNet", "PyTorch"], ["MXNet", "PyTorch"], ["PyTorch", "MXNet"]]
    headings = [axes.get_title(loc="left") for axes in figure.axes]
    assert headings == ["1 device", "8 devices", "16 devices on 2 nodes"]
    ends = [axes.get_xlim()[1] for axes in figure.axes]
    assert ends == pytest.approx([ROOM * most for most in (20, 120, 140)])
    assert {"oom", "75.00 (partial)"} <= {*texts(figure)}


def test_a_number_stands_where_its_median_is_with_its_mark_and_every_repeat_is_a_dot(cells):
    runs = [(9.0, 10.0, 12.0), *[()] * 6]
    doubtful, marks = [True, *[False] * 6], ["scattered", *[""] * 6]
    axes = throughput(cells.assign(runs=runs, marks=marks, doubtful=doubtful)).axes[0]
    [number] = [text for text in axes.texts if text.get_text() == "10.00 (scattered)"]
    assert number.xy[0] == 10.0
    dots = [dot for lines in axes.collections for dot in lines.get_offsets().tolist()]
    assert [x for x, _ in dots if x] == [9.0, 10.0, 12.0]
    assert {y > number.xy[1] for x, y in dots if x} == {True}  # they keep clear of the number
    assert [bar.get_alpha() for bar in axes.patches] == [1, 0.4]


def test_a_system_that_was_not_tried_is_in_no_figure_unless_there_is_nothing_else(cells, tmp_path):
    for figure in throughput(cells), draw_scaling("speedup", cells, "suite"):
        assert not any("OneFlow" in text for text in texts(figure))
    none = pd.DataFrame([cell(status="unsupported"), cell(devices=2, status="unsupported")])
    assert texts(throughput(none)).count("unsupported") == 2
    save(throughput(none), tmp_path / "throughput")
    save(draw_scaling("speedup", none, "suite"), tmp_path / "speedup")


IDEAL = [[1, 1], [8, 8], [16, 16]]


def test_each_series_has_a_plot_of_its_own_beside_the_ideal_the_best_first(cells):
    figure = draw_scaling("speedup", cells, "suite")
    assert points(figure) == [IDEAL, [[1, 1], [8, 7.5], [16, 14]]]
    assert points(figure, 1) == [IDEAL, [[1, 1], [8, 6]]]
    assert {"PyTorch\n14.00", "MXNet\n6.00", "on 16: oom"} <= {*texts(figure)}
    scattered, marks = [False, True, *[False] * 5], ["bound by loader", "scattered", *[""] * 5]
    marked = draw_scaling("speedup", cells.assign(scattered=scattered, marks=marks), "suite")
    assert points(marked)[1] == [[1, 1], [16, 14]]
    assert "on 1: bound by loader\non 8: scattered" in texts(marked)


def test_efficiency_is_drawn_over_device_counts_that_double(cells):
    figure = draw_scaling("efficiency", cells, "suite")
    axes = figure.axes[0]
    ideal, measured = points(figure)
    assert {y for _, y in ideal} == {1}
    assert measured == [[1, 1], [8, 0.9375], [16, 0.875]]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "8", "16"]
    first, four, last = axes.transData.transform([(1, 0), (4, 0), (16, 0)])[:, 0]
    assert four == pytest.approx((first + last) / 2)
    assert {"PyTorch\n87.5 %", "on 16: oom"} <= {*texts(figure)}


def over(baseline: str, *named: str, **changes) -> dict:
    return cell(*named, baseline=baseline, **changes)


SHARED = cell(devices=3, median=1.5, shared_cpus=2)


@pytest.mark.parametrize(
    ("rows", "lines", "said"),
    [
        (
            [over("1n8g", devices=8, speedup=1.0), over("1n8g", nodes=4, devices=8, speedup=3.6)],
            [[[[8, 1], [32, 4]], [[8, 1], [32, 3.6]]]],
            {"Speedup over 1n8g. suite"},
        ),
        (
            [
                cell("A", "a", speedup=1.0),
                cell("A", "a", devices=8, speedup=7.0),
                over("1n8g", devices=8, speedup=1.0),
                over("1n8g", nodes=2, devices=8, speedup=1.9),
                over("2n8g", "B", "b", nodes=2, devices=8, status="oom"),
            ],
            [[IDEAL, [[1, 1], [8, 7]]], [[[8, 1], [16, 2]], [[8, 1], [16, 1.9]]]],
            {
                *("A\n7.00 over 1n1g", "PyTorch\n1.90 over 1n8g", "B", "on 16: oom"),
                "Speedup over the baseline that each plot names. suite",
            },
        ),
        ([cell(devices=8, median=1.0)], [[]], {"Speedup. suite"}),
        (
            [cell(median=1.0, speedup=1.0, shared_cpus=None), SHARED],
            [[[[1, 1], [3, 3]], [[1, 1]]]],
            {"on 3: 3 devices share 2 CPUs"},
        ),
    ],
    ids=["over eight", "over different ones", "over nothing", "shared CPUs"],
)
def test_a_speedup_names_its_baseline_where_its_ideal_begins(rows, lines, said):
    figure = speedup(*rows)
    assert [points(figure, plot) for plot in range(len(lines))] == lines
    assert said <= {*texts(figure)}


def test_devices_that_share_cpus_are_a_group_that_says_so():
    cells = cell(median=1.0, shared_cpus=None), SHARED
    assert "3 devices share 2 CPUs" in texts(throughput(pd.DataFrame(cells)))


def test_a_system_has_one_colour_and_its_second_series_a_hatch(cells):
    line = draw_scaling("speedup", cells, "suite").axes[1].lines[-1]
    patches = throughput(cells[cells["system"] == "mxnet"]).axes[0].patches
    assert line.get_color() == colour_of("mxnet")
    assert {to_hex(bar.get_facecolor()) for bar in patches} == {colour_of("mxnet").lower()}
    twin = cells.assign(series=cells["series"] + ", compiled")
    patches = throughput(pd.concat([cells, twin], ignore_index=True)).axes[0].patches
    assert sum(bar.get_hatch() is not None for bar in patches) == len(patches) / 2


def test_titles_numbers_and_headings_keep_clear_of_each_other(cells):
    long = draw_throughput(cells, "A finding of some length " * 5, "subtitle " * 30, "images/s")
    assert not overlapping(long)


def test_an_epoch_and_the_memory_of_each_of_many_stages_keep_clear_of_each_other():
    """Two devices beside sixteen, whose names are long, and a published row beside both."""
    many = " ".join(str(megabytes << 20) for megabytes in range(9_000, 25_000, 1_000))
    rows = [
        cell(devices=2, epoch_seconds=1_400.5, stage_memory="404000000"),
        cell("w" * 60, "a", 2, 8, epoch_seconds=210.25, stage_memory=many),
        cell("B", "b", 2, 8, epoch_seconds=NAN, stage_memory="", status="oom"),
    ]
    other = cell("other", "a", 1, 8, epoch_seconds=NAN, stage_memory=str(8325 << 20))
    published = pd.DataFrame([other | {"status": "not printed"}])
    figure = draw_epochs(pd.DataFrame(rows), "title", "suite", published)
    lengths = [[bar.get_width() for bar in axes.patches] for axes in figure.axes]
    assert lengths[::2] == [[1_400.5], [210.25], []]
    assert [len(memory) for memory in lengths[1::2]] == [1, 16, 1]
    said = {"1,400.50", "385", "24,000 (stage 15)", "oom", "As published: 8 devices: an epoch"}
    assert said | {"not printed", "8,325"} <= {*texts(figure)}
    assert not overlapping(figure)


def steps(*runs: list[float], first: int = 20, last: int = 80, **changes) -> dict:
    """A cell whose runs print their step times at iteration 10, 20, ..."""
    found = [Steps((*range(10, 10 * len(ms) + 1, 10),), (*ms,), (first, last)) for ms in runs]
    return cell(**changes) | {"steps": found}


EVEN = [400.0, 101, 100, 99, 100, 102, 100, 101]


@pytest.mark.parametrize(
    ("later", "title"),
    [
        ([], "Steps are steady: none is more than 2.0 % from its run's median"),
        (
            [102, 150, 100],
            "Steps are uneven: one of PyTorch on 1 device is 50.0 % above its run's median",
        ),
        ([110, 110, 110], "PyTorch on 1 device slows down by 10.0 % within a window"),
    ],
)
def test_the_title_of_step_times_says_who_drifts_or_stands_out(later, title):
    other = [400.0, 101, 100, 100, 100, *later] if later else EVEN
    figure = draw_steps(pd.DataFrame([steps(EVEN, other)]), "suite")
    said = [" ".join(text.get_text().split()) for text in figure.texts]
    assert said[0] == title
    assert said[1].endswith("a line for each run, each point the mean of 10. suite")


def test_each_cell_has_a_plot_a_line_a_run_its_window_and_a_note_on_what_leaves_it():
    rows = [steps(EVEN, EVEN), steps([50.0, 50, 50], devices=2, first=10, last=30)]
    figure = draw_steps(pd.DataFrame([*rows, cell("MXNet", "mxnet") | {"steps": []}]), "suite")
    assert [len(axes.lines) for axes in figure.axes] == [2, 1]
    assert [line.get_ydata().tolist() for line in figure.axes[0].lines] == [EVEN, EVEN]
    windows = [axes.patches[0] for axes in figure.axes]
    assert [(shade.get_x(), shade.get_width()) for shade in windows] == [(20, 60), (10, 20)]
    assert {"PyTorch\n1 device: 100.0 ms", "PyTorch\n2 devices: 50.00 ms"} <= {*texts(figure)}
    [note] = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert note == "off the scale: up to 400.0 ms"
    assert figure.axes[0].get_ylim()[1] < 120
    many = [
        steps(EVEN, series=f"system {k}", devices=devices)
        for devices in (1, 8)
        for k in range(MOST_PLOTS - 1)
    ]
    names = [name for name in texts(draw_steps(pd.DataFrame(many), "suite")) if "device" in name]
    assert len(names) == MOST_PLOTS - 1
    assert all("8 devices" in name for name in names)


@pytest.mark.parametrize(
    ("kind", "column", "first", "found"),
    [
        ("energy", "joules_per_sample", "B", "Energy per sample on {}: 0.5000 J (B) to 0.8000 J"),
        ("utilisation", "flop_utilisation", "A", "FLOP utilisation on {}: 80.0 % (A) to 50.0 %"),
    ],
)
def test_a_cost_is_drawn_as_the_throughput_is_with_the_best_on_top(kind, column, first, found):
    cells = pd.DataFrame([cell(name, name.lower(), median=1.0) for name in "ABC"])
    figure = draw_cost(kind, cells.assign(**{column: [0.8, 0.5, NAN]}), "suite")
    said = texts(figure)
    assert " ".join(said[-2].split()).startswith(found.format("1 device"))
    assert said[0] == first
    assert {"not metered", "unknown"} & {*said}
    nothing = texts(draw_cost(kind, cells.assign(**{column: NAN}), "suite"))
    assert nothing[-2] == "Nothing was measured"


@pytest.mark.long
def test_published_figures_show_the_speedups_of_their_reports(monkeypatch):
    """Those that begin at eight devices are against these: 21.22 and 78.48 sentences/s."""
    drawn = {}  # to save them takes a quarter of a minute
    monkeypatch.setattr(figures, "save", lambda figure, stem: drawn.update({stem.name: figure}))
    draw_published("published")
    ideal, line = points(drawn["oneflow-resnet50-amp-dynamic-loss-scale-speedup"])
    assert ideal == [[1, 1], [8, 8], [16, 16], [32, 32]]
    assert line == [[1, 1], [8, 7.12], [16, 12.08], [32, 22.14]]
    collective = drawn["fleetx-bert-large-collective-efficiency"].axes[0].lines
    efficiencies = [line.get_xydata().tolist() for line in collective]
    assert [8, 1] in efficiencies[-1]
    assert any([32, 3.70 / 4] in line for line in efficiencies)


def test_equal_numbers_are_equal_bytes_whatever_the_users_settings(tmp_path):
    names = {"suite": "mine", "system": "pytorch", "workload": "resnet50", "precision": "fp32"}
    row = names | {"topology": "1n1g", "num_nodes": 1, "devices_per_node": 1, "unit": "images/s"}
    row |= {"batch_size_per_device": 4, "status": "ok", "throughput": 2.5}
    numbers = {f"throughput_{name}": 2.5 for name in ("median", "min", "max")}
    numbers |= {"speedup": 1.0, "baseline": "1n1g"}
    tables = {"runs.csv": (row, MEASUREMENTS), "summary.csv": (row | numbers, SUMMARY)}
    for name, (given, columns) in tables.items():
        write_table(tmp_path / name, [dict.fromkeys(columns) | given], columns)
    given = tmp_path / "runs.csv", tmp_path / "summary.csv"
    draw_suite(*given, tmp_path / "here")
    settings = tmp_path / "matplotlibrc"
    settings.write_text("font.size: 30\naxes.grid: False\nsvg.fonttype: none\nsavefig.dpi: 10\n")
    draw = "import sys; from reperf.drawing.figures import draw_suite; draw_suite(*sys.argv[1:])"
    subprocess.run(
        [sys.executable, "-c", draw, *map(str, (*given, tmp_path / "there"))],
        check=True,
        env={**os.environ, "MATPLOTLIBRC": str(settings), "PYTHONHASHSEED": "7"},
    )
    for kind in ("throughput.svg", "speedup.png", "efficiency.svg", "efficiency.png"):
        here, there = (tmp_path / f"{place}-{kind}" for place in ("here", "there"))
        assert here.read_bytes() == there.read_bytes(), kind
    svg = (tmp_path / "here-throughput.svg").read_text()
    assert "<dc:date>" not in svg
    assert "<text" not in svg  # letters are drawn as paths
    assert not re.search(r"https?://(?!www\.w3\.org|purl\.org|creativecommons\.org)", svg)
    with Image.open(tmp_path / "here-throughput.png") as image:
        assert set(image.info) <= {"dpi"}


USUAL = {
    "workload": "resnet50",
    "shape": "image_size=224",
    "input": "records",
    "device": "cuda",
    "precision": "fp32",
    "batch_size_per_device": 8,
    "status": "ok",
    "source": "",
}


def test_titles_and_series_come_from_the_summary_alone():
    rows = {
        "status": ["ok", "partial", "ok"],
        "system": ["pytorch", "pytorch", "someone-elses"],
        "variant": ["", "compile", ""],
        "parallel": ["", "stages 7 + 1", ""],
        "source": ["", "", "logs.zip"],
        "servers": ["", "1 server a node", ""],
    }
    same = pd.DataFrame(USUAL | rows)
    second = "PyTorch, compile, stages 7 + 1, 1 server a node"
    assert list(series_of(same)) == ["PyTorch", second, "someone-elses, from logs.zip"]
    mixed = same.assign(batch_size_per_device=[256, 224, 256])
    assert title_of(mixed) == "ResNet-50 v1.5, FP32, batch sizes 224 to 256"
    refused = mixed.assign(status=["ok", "refused", "oom"])
    assert title_of(refused) == "ResNet-50 v1.5, FP32, batch size 256"
    assert title_of(mixed.assign(status="refused")) == title_of(mixed)
    assert series_of(mixed)[1] == f"{second}, batch 224"


SMALL_BERT = "sequence_length=64 layers=2 hidden=128 heads=2"


@pytest.mark.parametrize(
    ("workload", "shape", "title"),
    [
        ("resnet50", "image_size=224", "ResNet-50 v1.5"),
        ("resnet50", "image_size=64", "ResNet-50 v1.5 (64 px)"),
        ("bert-base", SMALL_BERT, "BERT pretraining (sequences of 64, 2 layers, hidden 128)"),
        ("bert-base", "vocabulary=2000", "BERT pretraining (vocabulary 2000)"),
        ("bert-base", "", "BERT-base pretraining"),
    ],
)
def test_a_title_says_what_was_trained(workload, shape, title):
    cells = pd.DataFrame([USUAL | {"workload": workload, "shape": shape}])
    assert title_of(cells) == f"{title}, FP32, batch size 8"
    elsewhere = cells.assign(input="synthetic", device="cpu", precision="amp")
    assert title_of(elsewhere) == f"{title}, AMP, batch size 8, synthetic, on CPUs"


@pytest.mark.parametrize(
    ("counts", "said"), [([3, 3, 0], "n = 3"), ([2, 7], "n = 2 to 7"), ([0], ""), ([], "")]
)
def test_a_figure_says_how_many_repeats_its_medians_are_of(counts, said):
    assert repeats_of(pd.DataFrame({"n": pd.Series(counts, dtype="Int64")})) == said


def test_names_that_leave_no_room_are_shortened_and_stay_different():
    names = pd.Series(["PyTorch", *(f"{'a' * 50}{middle}{'b' * 50}" for middle in "xyx")])
    first, second, third, fourth = _shortened(names)
    assert (first, second) == ("PyTorch", fourth)
    assert second != third
    assert re.fullmatch("aaa+…b+bbb", second) and len(second) == LONGEST_NAME


def test_a_figure_is_never_higher_than_a_picture_can_be(cells, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "HIGHEST", 300)
    save(draw_throughput(cells, "a", "b", "images/s"), tmp_path / "low")
    with Image.open(tmp_path / "low.png") as image:
        assert image.size[1] == 300


HOSTILE = "$\\frac{$ \x1b[2J\n--> <b>&\x00\u2028\u202e\udcff\uffff ]]> \U0001f680 \u4e2d \u05d0"


@pytest.mark.filterwarnings("error:Glyph")  # the font lacks some letters
def test_a_figure_shows_any_text_and_holds_no_character_that_xml_forbids(cells, tmp_path):
    named = cells.assign(series=cells["series"] + HOSTILE, topology=HOSTILE)
    odd = named.assign(status=named["status"].where(named["speedup"].notna(), HOSTILE))
    throughput = draw_throughput(odd, HOSTILE, HOSTILE, HOSTILE)
    assert textwrap.fill(f"PyTorch{printable(HOSTILE)}", NAME) in texts(throughput)
    drawn = {"throughput": throughput, "speedup": draw_scaling("speedup", odd, HOSTILE)}
    for name, figure in drawn.items():
        save(figure, tmp_path / name)
        svg = (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
        assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
        assert svg.replace("\n", "").isprintable()


def stated_colours() -> np.ndarray:
    stated = [system.colour for system in load_systems().values() if system.colour]
    return np.array([[int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)] for colour in stated])


@pytest.mark.parametrize("eye", [np.eye(3), PROTANOPE, DEUTERANOPE], ids=["all", "prot", "deut"])
def test_colours_differ_for_every_eye(eye):
    # sRGB's transfer curve, to linear light and back.
    linear = stated_colours() ** 2.2 @ np.array(eye).T
    lab = skimage.color.rgb2lab(np.clip(linear, 0, 1) ** (1 / 2.2))
    assert min(skimage.color.deltaE_ciede2000(a, b) for a, b in combinations(lab, 2)) > 10


def test_colours_differ_in_grey_and_stand_out_and_never_change():
    lightness = sorted(skimage.color.rgb2lab(stated_colours())[:, 0])
    assert min(np.diff(lightness)) > 2
    assert 35 < lightness[0] <= lightness[-1] < 78
    assert colour_of("someone-elses") == "#8c6d5a"  # of an unknown system, by its name alone
