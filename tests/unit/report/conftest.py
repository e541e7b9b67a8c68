"""A report with a bit of everything: good, partial and failed cells, GPUs, hostile names."""

import pytest
from reperf.report import write_report

from tests.unit.report.benchmarks import (
    Benchmark,
    Page,
    asked,
    draw_figures,
    eight_systems,
    invented,
    suite,
)

SUITES = (
    suite("resnet50-fp32", systems=["oneflow", "ngc-mxnet", "pytorch", "paddlepaddle"]),
    suite(
        "resnet50-amp",
        systems=[
            "pytorch",
            {"system": "pytorch", "variants": "dynamic-loss-scale"},
            {"system": "ngc-tensorflow1", "variants": "xla", "batch_size": 224},
        ],
    ),
)


@pytest.fixture(scope="session")
def big_benchmark(tmp_path_factory) -> Benchmark:
    """GPUs on four nodes, with cells that ended in every way; two systems cannot run."""
    lacks = ("ngc-mxnet", "ngc-tensorflow1")
    folder = tmp_path_factory.mktemp("big")
    benchmark = invented(folder, asked(*SUITES), lacks=lacks, metered=False)
    draw_figures(benchmark, ("speedup", "efficiency"))
    return benchmark


@pytest.fixture(scope="session")
def written(big_benchmark: Benchmark) -> tuple[str, str, str]:
    """The page and the document of the benchmark as it is, and the page of published reports."""
    it, folder = big_benchmark, big_benchmark.figures.parent / "results"
    suffixes = {"html": "report.html", "markdown": "report.md", "published": "published.html"}
    files = {name: folder / suffix for name, suffix in suffixes.items()}
    given = it.report, it.records, it.measurements, it.summary
    write_report(*given, figures=it.figures, **files)
    html, markdown, published = (path.read_text(encoding="utf-8") for path in files.values())
    return html, markdown, published


@pytest.fixture(scope="session")
def plain_pages(written) -> tuple[str, str]:
    return written[:2]


@pytest.fixture(scope="session")
def page(plain_pages) -> Page:
    return Page(plain_pages[0])


@pytest.fixture(scope="session")
def eight(tmp_path_factory) -> Benchmark:
    return eight_systems(tmp_path_factory.mktemp("eight"), suites=2)


@pytest.fixture(scope="session")
def eight_page(eight) -> str:
    return eight.pages[0]
