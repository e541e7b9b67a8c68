"""The Markdown report, read by a real Markdown parser."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from reperf.layout import PUBLISHED_KINDS
from reperf.number_format import in_four_digits
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
    computed = {"fp32": "float32", "amp": "float16, float32 weights, loss scale 128"}
    shown = rows(tokens)
    for cell in big_benchmark.summary.dropna(subset="throughput_median").itertuples():
        shape = [str(cell.num_nodes), str(cell.devices_per_node), str(cell.batch_size_per_device)]
        numbers = [*map(in_four_digits, (cell.throughput_median, cell.throughput_min))]
        row = next(row for row in shown if row[1:4] == shape and row[5:7] == numbers)
        assert (row[8], row[11]) == (f"{cell.speedup:.2f}", computed[cell.precision])


def test_the_table_names_failures_waiting_and_marks(tokens, plain_pages):
    cells = [row for row in rows(tokens) if len(row) == 14]
    assert [row[:5] for row in cells if row[5] == "failed"] == [
        ["PaddlePaddle", "2", "8", "128", "0"],
        ["PaddlePaddle", "4", "8", "128", "0"],
    ]
    said = {row[0]: (row[10], row[13]) for row in cells if row[5] != "failed"}
    assert said["PyTorch"] == ("3.8 %", "")
    assert said["PaddlePaddle"] == ("25.0 %", "machine busy, bound by loader")
    assert said["OneFlow"] == ("not measured", "")
    text = plain_pages[1]
    assert ", 2 shared the machine with other work, 2 waited for data." in text.splitlines()[2]
    assert text.count("Bound by its loader: training waited for the next batch for more") == 1


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
    table = f"| one |\n|---|\n| {literal(text)} |\n"
    assert rows(MARKDOWN.parse(table))[1] == [" ".join(text.split())]
