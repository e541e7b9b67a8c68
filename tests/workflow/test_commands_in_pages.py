"""Every command line in README and pages, run in their order; or the test that runs it is named."""

import re
import shlex
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.helpers.small_benchmark import ROOT, Benchmark

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md")),
    *sorted(ROOT.glob("docs/*.md")),
]
COMMAND = re.compile(r"(?:reperf|snakemake|make|python|pytest|uv|pipx|git|source|cp|sha256sum) .+")
GAP = re.compile(r"(?<!\?P)<\w+>|\.\.|\[-|\b(?:FILE|REGEX|NAME|FOLDER)\b")
"""What a reader must fill in."""
NAMES = (
    "reperf measure",
    "reperf runs",
    "reperf survey",
    "reperf doctor",
    "reperf noise",
    "reperf reproduce",
    "reperf export",
    "reperf archive verify",
    "git pull",
    "uv pip compile",
    "cp -r",
)
"""A command as a sentence calls it."""
ELSEWHERE = {
    r"^make report": "tests/workflow/test_report.py",
    r"^make test|^uv tool run pre-commit|^pytest (-|tests/unit)": ".ci/run",
    r"^make site": "tests/unit/docs/test_site.py",
    r"^git clone|^source |^make .venv": "tests/workflow/test_places.py",
    r"^reperf survey|^snakemake .*survey$": "tests/slurm/test_survey_on_slurm.py",
    r"--profile slurm|cluster.py": "tests/slurm/test_cluster.py",
    r"--profile hosts": "tests/slurm/test_hosts.py",
    r"reports/modern.yaml site.yaml$": "tests/slurm/test_sites_on_slurm.py",  # in a job
    r"^snakemake .*one-node": "tests/workflow/test_report.py",  # that it needs GPUs
    r"^reperf compare|comparing.py --published": "tests/unit/commands/test_compare.py",
    r"^reperf noise": "tests/unit/commands/test_noise.py",
    r"^reperf history": "tests/unit/commands/test_history.py",
    r"^reperf reproduce": "tests/workflow/test_archive_of_a_run.py",
    r"^reperf estimate --configfile benchmark": "tests/unit/docs/test_in_ci.py",
    r"^reperf config init benchmark": "tests/unit/docs/test_in_ci.py",
    r"^reperf doctor": "tests/workflow/test_report.py",
    r"systems=all": "tests/systems/test_every_system.py",
    r"on_busy=wait": "tests/unit/training/test_readiness.py",
    r"trainer\.log": "tests/unit/logs/test_log_formats_page.py",
    r"numpy|softmax|pytorch-foreach": "tests/systems/test_pages_on_adding.py",
    r"^reperf archive .*--(key|signers)": "tests/unit/archive/test_signature.py",
    r"h200-report": "tests/unit/logs/test_logs_of_gpus.py",
    r"benchmarks/(comparing|surveying)": "tests/benchmarks/test_benchmarks.py",
    r"^uv (build|tool install)": "tests/workflow/test_wheel.py",
}
"""Where those run that take minutes, or need what the machine of this test lacks."""

TABLES = "results/summary.csv"
SMALL = {
    "resnet50-fp32-synthetic": "small-synthetic",
    "resnet50-fp32": "small",
    "/pytorch/": "/stand-in/",
    "2:10": "2:4",
    "path/to/config.json": f"path/to/config.json -- {TABLES}",
    '["purelib"]': '["scripts"]',  # compiling all packages of the tests takes a minute
    "snakemake --forcerun": f"snakemake {TABLES} --forcerun",  # figures and archives, others make
}
"""What the report of `make report` has -> what the small benchmark has in its place."""


def commands(page: Path) -> Iterator[str]:
    """The whole command lines of a page, in code blocks and within lines."""
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")):
        texts = [part.content for part in token.children or () if part.type == "code_inline"]
        if token.type in ("fence", "code_block"):
            texts += token.content.replace("\\\n", " ").splitlines()
        for text in texts:
            line = re.split(r"\s{2,}#|\s#\s", text.removeprefix("$ "))[0].strip()
            for command in line.split(" && "):
                if COMMAND.fullmatch(command) and not GAP.search(command) and command not in NAMES:
                    yield command


def elsewhere(command: str) -> str | None:
    return next((where for known, where in ELSEWHERE.items() if re.search(known, command)), None)


def test_commands_that_run_elsewhere_are_in_a_page_and_their_test_is_there():
    every = [command for page in PAGES for command in commands(page)]
    assert [where for where in ELSEWHERE.values() if not (ROOT / where).exists()] == []
    assert [known for known in ELSEWHERE if not any(re.search(known, c) for c in every)] == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("in_readme", "least"), [(True, 12), pytest.param(False, 20, marks=pytest.mark.weekly)]
)
def test_every_other_command_runs(finished_benchmark: Benchmark, in_readme: bool, least: int):
    folder = finished_benchmark.folder
    prepare(folder)
    pages = [page for page in PAGES if (page.name == "README.md") == in_readme]
    asked = [command for page in pages for command in commands(page) if not elsewhere(command)]
    assert len(set(asked)) >= least
    failed = []
    for command in dict.fromkeys(asked):
        call = command
        for said, small in SMALL.items():
            call = call.replace(said, small)
        targets = [
            word for word in call.split() if word.startswith(("results/", "archive/", "fig"))
        ]
        if call.startswith("snakemake"):  # it makes what is not there
            for target in targets:
                (folder / target).unlink()
        inside = "cd another-folder && " if call.startswith("sha256sum") else ""
        if re.fullmatch(r"(snakemake|reperf) [^$|*>]+", call):  # needs no shell
            answer = finished_benchmark.forked(*shlex.split(call))
        else:
            answer = finished_benchmark.call("bash", "-c", f"set -o pipefail; {inside}{call}")
        made = all((folder / one).exists() for one in targets if "*" not in one)
        if answer.returncode or not made:
            failed.append(f"{call}: {answer.returncode}\n{answer.stdout[-1500:]}")
    assert not failed, "\n".join(failed)


def prepare(folder: Path) -> None:
    """Bring what the pages take for granted: logs, a configuration, an unpacked archive."""
    logs = ROOT / "tests/data/logs"
    lines = (f"[03:{n // 60:02}:{n % 60:02}.250] it#{n} loss 2.3\n" for n in range(1, 130))
    (folder / "train.log").write_text("".join(lines))
    shutil.copy(folder / "config.yaml", folder / "mine.yaml")
    for name in ("maskrcnn", "resnet"):
        (folder / name).mkdir()
        shutil.copy(logs / "oneflow_resnet50_2n8g_b128_fp32.log", folder / name / "result_0.txt")
    with zipfile.ZipFile(folder / "published-logs.zip", "w") as archive:
        archive.write(logs / "oneflow_resnet50_2n8g_b128_fp32.log", "logs/one.log")
    with zipfile.ZipFile(folder / "archive/small.zip") as archive:
        archive.extract("config.json", folder / "path/to")
