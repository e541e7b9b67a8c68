"""The Markdown report, read by a real Markdown parser."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from matplotlib.figure import Figure
from reperf.drawing import figures
from reperf.layout import PUBLISHED_KINDS
from reperf.report.markdown import literal
from reperf.text import FILLERS

MARKDOWN = MarkdownIt("commonmark").enable("table")


@pytest.fixture(scope="module")
def tokens(plain_pages):
    return MARKDOWN.parse(plain_pages[1])


def rows(tokens) -> list[list[str]]:
    """The rows of all tables, as the parser sees them."""
    found = []
    for before, token in pairwise(tokens):
        if before.type == "tr_open":
            found.append([])
        if before.type in ("td_open", "th_open"):
            found[-1].append("".join(child.content for child in token.children))
    return found


def test_the_table_of_a_suite_holds_its_medians_and_speedups(tokens, big_benchmark):
    shown = rows(tokens)
    for cell in big_benchmark.summary.dropna(subset="throughput_median").itertuples():
        shape = [str(cell.num_nodes), str(cell.devices_per_node), str(cell.batch_size_per_device)]
        numbers = [f"{cell.throughput_median:.2f}", f"{cell.throughput_min:.2f}"]
        matching = [row for row in shown if row[1:4] == shape and row[5:7] == numbers]
        assert matching, cell
        assert matching[0][8] == f"{cell.speedup:.2f}"
        computed = {"fp32": "float32", "amp": "float16, float32 weights, loss scale 128"}
        assert matching[0][11] == computed[cell.precision]


def test_the_table_says_how_long_a_cell_waited_for_data_and_marks_one_bound_by_its_loader(
    tokens, plain_pages
):
    cells = [row for row in rows(tokens) if len(row) == 14 and row[5] != "failed"]
    said = {row[0]: row[10] for row in cells}
    assert said["PyTorch"] == "3.8 %"
    assert said["PaddlePaddle"] == "25.0 %"
    assert {row[13] for row in cells if row[0] == "PaddlePaddle"} == {
        "machine busy, bound by loader"
    }
    assert said["OneFlow"] == "not measured"
    text = plain_pages[1]
    assert ", 2 shared the machine with other work, 2 waited for data." in text.splitlines()[2]
    assert text.count("Bound by its loader: training waited for the next batch for more") == 1


def test_a_bad_cell_shows_its_status(tokens):
    failed = [row for row in rows(tokens) if len(row) > 5 and row[5] == "failed"]
    assert [row[:5] for row in failed] == [
        ["PaddlePaddle", "2", "8", "128", "0"],
        ["PaddlePaddle", "4", "8", "128", "0"],
    ]


@pytest.fixture(scope="module")
def drawn() -> dict[str, Figure]:
    """The figures of the published tables, by their paths; to save them takes a quarter minute."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "save", lambda figure, stem: found.update({f"{stem}.svg": figure}))
        figures.draw_published("../figures/published")
    return found


def lines(drawn, name: str) -> list[list[list[float]]]:
    axes = drawn[f"../figures/published/{name}.svg"].axes[0]
    return [line.get_xydata().tolist() for line in axes.lines]


def test_published_figures_show_the_speedups_of_their_reports(drawn):
    """Those that begin at eight devices are against these: 21.22 and 78.48 sentences/s."""
    [ideal, line] = lines(drawn, "oneflow-resnet50-amp-dynamic-loss-scale-speedup")
    assert ideal == [[1, 1], [8, 8], [16, 16], [32, 32]]
    assert line == [[1, 1], [8, 7.12], [16, 12.08], [32, 22.14]]
    efficiencies = lines(drawn, "fleetx-bert-large-collective-efficiency")
    assert [8, 1] in efficiencies[-1]
    assert any([32, 3.70 / 4] in line for line in efficiencies)


def test_images_and_links_name_files_that_the_workflow_makes(tokens):
    inline = [child for token in tokens for child in token.children or ()]
    images = [token.attrs["src"] for token in inline if token.type == "image"]
    assert [image.rpartition("/")[2] for image in images] == [
        f"resnet50-{precision}-{kind}.svg"
        for precision in ("fp32", "amp")
        for kind in PUBLISHED_KINDS  # no run of these was metered, or logged its steps
    ]
    links = {token.attrs["href"] for token in inline if token.type == "link_open"}
    assert links == {"measurements.csv", "summary.csv", "report.html"}


# What nobody sees stands as its escape: see test_text.py.
SEEN = st.characters(exclude_categories=("C", "Z"), exclude_characters="".join(FILLERS))
TEXT = st.text(SEEN | st.sampled_from(" `|*_<>[]\\#~!&"))


@settings(max_examples=100)
@given(TEXT.map(lambda text: f"a{text}z"))
def test_any_text_in_a_table_reads_as_it_is(text):
    words = " ".join(text.split())
    table = f"| one |\n|---|\n| {literal(text)} |\n"
    assert rows(MARKDOWN.parse(table))[1] == [words]
