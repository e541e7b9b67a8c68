"""Wrong input: one line that says what and where, before any job starts."""

import pytest

from tests.helpers.refusal import cannot_run
from tests.helpers.small_benchmark import SMALL, TOY, Benchmark

SUITE = TOY["suites"][0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"reapeats": 3}, "config.yaml: reapeats: unknown key; allowed: "),
        ({"data": {"name": "mine", "images": "nowhere"}}, "data.mine: nowhere: no such folder"),
    ],
)
def test_a_wrong_configuration_is_one_line(changes: dict, said: str, benchmark: Benchmark):
    """One key and one path; tests/unit has all other refusals."""
    benchmark.configure(**changes)
    answer = benchmark.snakemake("-n")
    assert answer.returncode != 0
    snakemakes_own, line = answer.stdout.splitlines()
    assert snakemakes_own.startswith("Using workflow specific profile profiles/default")
    assert line.startswith("reperf: ")
    assert said in line
    assert not (benchmark.folder / "results").exists()


def test_a_key_that_appears_twice_is_one_line_in_whichever_file(benchmark: Benchmark):
    """Snakemake takes the last; tests/unit/test_yaml_files.py has what else is refused."""
    (benchmark.folder / "site.yaml").write_text("title: a\nrepeats: 3\nrepeats: 9\n")
    answer = benchmark.snakemake("-n", "--configfile", "config.yaml", "site.yaml")
    assert answer.returncode == 1
    said = "reperf: site.yaml: 'repeats' appears twice, in lines 2 and 3; allowed: each key once"
    assert answer.stdout.splitlines()[-1] == said
    assert not (benchmark.folder / "results").exists()


def test_a_file_without_suites_adds_to_the_report_and_both_are_named(benchmark: Benchmark):
    (benchmark.folder / "site.yaml").write_text("repeats: 3\ndata: {parts: 0}\n")
    answer = benchmark.snakemake("-n", "--configfile", "site.yaml")
    assert "reperf: config.yaml + site.yaml: data.parts: got 0;" in answer.stdout
    (benchmark.folder / "site.yaml").write_text("repeats: 3\ndata: {workers: 3}\n")
    planned = benchmark.planned("--configfile", "site.yaml")["train"]
    runs = benchmark.call("reperf", "runs", "--configfile", "site.yaml").stdout
    assert len(runs.splitlines()) == planned == 7


def test_what_the_command_line_says_of_a_key_counts_more_than_the_file(benchmark: Benchmark):
    answer = benchmark.snakemake("-n", "--config", "repeats=0")
    assert "config.yaml with --config: repeats: got 0;" in answer.stdout


def test_runs_that_would_share_this_machine_are_one_line(benchmark: Benchmark):
    answer = benchmark.snakemake("-n", "-j", "2")
    assert answer.returncode == 1
    assert "config.yaml: cluster: missing; --profile slurm and --jobs need it" in answer.stdout


def test_a_report_for_a_cluster_is_not_run_on_this_machine(benchmark: Benchmark):
    benchmark.configure(cluster={"nodes": 4, "devices_per_node": 8})
    answer = benchmark.snakemake()
    assert answer.returncode != 0
    line = "config.yaml: cluster: the report needs it; allowed: --profile slurm"
    assert [said for said in answer.stdout.splitlines() if line in said], answer.stdout
    assert "Traceback" not in answer.stdout
    assert not (benchmark.folder / "results").exists()


@pytest.mark.image
def test_an_image_that_is_none_is_told_before_another_system_trains(
    begun_benchmark: Benchmark, podman_settings: None
):
    benchmark = begun_benchmark
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
