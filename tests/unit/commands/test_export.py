"""A suite's table for a paper, a page or another program."""

import pytest
from reperf.cli import main
from reperf.commands.export import HEADINGS
from reperf.tables import SUMMARY, write_table

CELL = dict.fromkeys(SUMMARY) | {
    **{"suite": "small_fp32", "system": "pytorch", "workload": "resnet50", "precision": "fp32"},
    **{"batch_size_per_device": 8, "topology": "1n1g", "num_nodes": 1, "devices_per_node": 1},
    **{"input": "synthetic", "shape": "image_size=64", "device": "cpu", "unit": "images/s"},
    **{"status": "ok", "n": 3, "speedup": 1.0, "efficiency": 1.0, "load": 0.4},
    **{"throughput_median": 1234.5678, "throughput_min": 1200.0, "throughput_max": 1250.25},
}
NUMBERS = [name for name in CELL if name.startswith(("throughput", "speedup", "effic", "load"))]
OOM = CELL | dict.fromkeys(NUMBERS)
OOM |= {"system": "[a_b&c]", "variant": "50%", "status": "oom", "n": 0, "reason": "rank_0 is full"}
"""A cell without a number, of a system whose name LaTeX would read as something else."""
LACKS = "2 of 3 repeats not measured"
PARTIAL = CELL | {"topology": "1n2g", "status": "partial", "reason": LACKS, "n": 1, "load": 0.0}


@pytest.fixture
def summary(tmp_path):
    path = tmp_path / "summary.csv"
    write_table(path, [CELL, OOM, PARTIAL], SUMMARY)
    return path


TITLE = "ResNet-50 v1.5 (64 px), FP32, batch size 8, synthetic, on CPUs; images/s"
DASH = "\N{EN DASH}"
TABLES = {
    "latex": [
        f"% {TITLE}",
        r"\begin{tabular}{llrrrrrrl}",
        r"\toprule",
        rf"{' & '.join(HEADINGS).replace('Median', 'Median, images/s')} \\",
        r"\midrule",
        r"PyTorch & 1n1g & 1,235 & 1,200 & 1,250 & 1.00 & 100.0 \% & 3 & "
        r"not usable: 40.0 \% other work \\",
        r"{}[a\_b\&c], 50\% & 1n1g & oom &  &  &  &  & 0 & rank\_0 is full \\",
        rf"PyTorch & 1n2g & 1,235 & {DASH} & {DASH} & 1.00 & 100.0 \% & 1 & partial: {LACKS} \\",
        r"\bottomrule",
        r"\end{tabular}",
    ],
    "markdown": [
        f"**{TITLE}**",
        "",
        f"| {' | '.join(HEADINGS)} |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
        "| PyTorch | 1n1g | 1,235 | 1,200 | 1,250 | 1.00 | 100.0 % | 3 "
        "| not usable: 40.0 % other work |",
        r"| \[a\_b&c\], 50% | 1n1g | oom |  |  |  |  | 0 | rank\_0 is full |",
        f"| PyTorch | 1n2g | 1,235 | {DASH} | {DASH} | 1.00 | 100.0 % | 1 | partial: {LACKS} |",
    ],
    "csv": [
        "system,topology,median,min,max,speedup,efficiency,runs,remarks,unit",
        "PyTorch,1n1g,1234.5678,1200.0,1250.25,1.0,1.0,3,not usable: 40.0 % other work,images/s",
        '"[a_b&c], 50%",1n1g,oom,,,,,0,rank_0 is full,images/s',
        f"PyTorch,1n2g,1234.5678,,,1.0,1.0,1,partial: {LACKS},images/s",
    ],
}


@pytest.mark.parametrize("form", TABLES)
def test_a_suite_is_a_table_with_the_remarks_of_the_page(summary, capsys, form):
    assert main(["export", "small_fp32", "--format", form, "--summary", str(summary)]) == 0
    assert capsys.readouterr().out.splitlines() == TABLES[form]


def test_a_suite_that_is_not_there_is_one_line(summary, capsys):
    assert main(["export", "small-fp32", "--summary", str(summary)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"reperf: {summary}: no suite 'small-fp32'; allowed: small_fp32")
    assert len(said.splitlines()) == 1
