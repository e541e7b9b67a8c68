"""Wrong input: one line that says what and where, before any job starts."""

import sys

import pytest

from tests.helpers.refusal import cannot_run
from tests.helpers.small_benchmark import SMALL, TOY, Benchmark

SUITE = TOY["suites"][0]
# Ten of ten of ten: Snakemake's own reader would write out a million million values.
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefghijk", "bcdefghijkl", strict=True)
)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"reapeats": 3}, ["reapeats", "unknown key", "repeats"]),
        (
            {
                "topologies": ["1n512g"],
                "suites": [SUITE],
                "data": {"name": "embedded", "parts": 512},
            },
            ["local/report.yaml: ", "1n512g", "too large", "this machine has"],
        ),
        (
            {"suites": [SUITE | {"from": "/dev/zero"}]},
            ["from", "/dev/zero", "neither a file nor a folder"],
        ),
        ({"data": {"name": "mine", "images": "nowhere"}}, ["data.mine: nowhere: no such folder"]),
    ],
)
def test_a_wrong_configuration_is_one_line(changes: dict, said: list[str], benchmark: Benchmark):
    """Of a value, a machine, a path; tests/unit/config/test_config.py has the lines of all keys."""
    benchmark.configure(**changes)
    answer = benchmark.snakemake("-n")
    assert answer.returncode != 0
    snakemakes_own, line = answer.stdout.splitlines()
    assert snakemakes_own.startswith("Using profile local")
    assert line.startswith("reperf: ")
    for word in said:
        assert word in line
    assert not (benchmark.folder / "results").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title: a\nrepeats: 3\nrepeats: 9\n", "'repeats' appears twice, in lines 2 and 3"),
        (BOMB, "holds too many values"),
    ],
)
def test_a_file_that_cannot_be_a_configuration_is_one_line(
    text: str, said: str, benchmark: Benchmark
):
    """Snakemake reads it before the Snakefile; so it is one line for `--configfile` as well.

    tests/unit/test_written.py has the lines of all that can be wrong with a file.
    """
    report = benchmark.folder / "local/report.yaml"
    report.write_text(text, encoding="utf-8", errors="surrogateescape")
    answer = benchmark.snakemake("-n")
    assert answer.returncode == 1
    snakemakes_own, line = answer.stdout.splitlines()
    assert snakemakes_own.startswith("Using profile local")
    assert line.startswith("reperf: local/report.yaml: ")
    assert said in line
    assert not (benchmark.folder / "results").exists()


def test_a_file_that_is_not_there_is_one_line(benchmark: Benchmark):
    answer = benchmark.snakemake("-n", "--configfile", "nowhere.yaml")
    assert answer.returncode == 1
    assert answer.stdout.splitlines()[1:] == ["reperf: nowhere.yaml: No such file or directory"]


def test_without_the_profile_a_key_that_appears_twice_is_one_line_as_well(benchmark: Benchmark):
    (benchmark.folder / "config.yaml").write_text("repeats: 3\nrepeats: 9\n")
    answer = benchmark.call(sys.executable, "-m", "snakemake", "-n", "--cores", "1")
    assert answer.returncode == 1
    (line,) = (one for one in answer.stdout.splitlines() if one.startswith("reperf: "))
    said = "config.yaml: 'repeats' appears twice, in lines 1 and 2; allowed: each key once"
    assert line.endswith(said)
    assert "Traceback" not in answer.stdout


def test_what_the_command_line_says_of_a_key_counts_more_than_the_file(benchmark: Benchmark):
    answer = benchmark.snakemake("-n", "--config", "repeats=0")
    assert "local/report.yaml with --config repeats=0: repeats: got 0;" in answer.stdout


def test_a_report_for_a_cluster_is_not_run_on_this_machine(benchmark: Benchmark):
    benchmark.configure(cluster={"nodes": 4, "devices_per_node": 8})
    answer = benchmark.snakemake()
    assert answer.returncode != 0
    line = "local/report.yaml: cluster: the report is for one; allowed: --profile slurm"
    assert [said for said in answer.stdout.splitlines() if said.endswith(line)], answer.stdout
    assert "Traceback" not in answer.stdout
    assert not (benchmark.folder / "results").exists()


@pytest.mark.image
def test_an_image_that_is_none_is_told_before_another_system_trains(
    benchmark: Benchmark, podman_settings: None
):
    image = benchmark.folder / "image"
    image.mkdir()
    benchmark.configure(
        suites=[SMALL["suites"][0] | {"name": "imaged", "input": "synthetic"}, SUITE],
        images={"pytorch": str(image)},
        container={"engine": "podman"},
    )
    for _ in range(2):  # the next call is told the same
        answer = benchmark.snakemake()
        assert answer.returncode != 0
        told = f": failed: {image}: does not start with podman: "
        assert [line for line in answer.stdout.splitlines() if told in line], answer.stdout
        assert not list((benchmark.folder / "results/runs").rglob("train.log"))
        assert not list((benchmark.folder / ".images").rglob("environment.json"))


def test_a_checkout_that_cannot_be_written_is_one_line(benchmark: Benchmark):
    mount = 'mount --bind . . && mount -o remount,bind,ro "$PWD" "$PWD" && cd "$PWD" && exec "$@"'
    alone = ["unshare", "--mount", "sh", "-c", mount, "sh"]
    if benchmark.call(*alone, "true").returncode != 0:
        cannot_run("a file system that root can mount read-only")
    answer = benchmark.call(*alone, *benchmark.command())
    assert answer.returncode != 0
    said = f"reperf: {benchmark.folder}: not writable; allowed: a folder that you may write to"
    assert answer.stdout.splitlines()[-1] == said
    assert "Traceback" not in answer.stdout
