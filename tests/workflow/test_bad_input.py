"""Wrong input: one line that says what and where, before any job starts."""

import pytest
from refusal import cannot_run
from small_benchmark import SMALL, Benchmark

SUITE = SMALL["suites"][0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"reapeats": 3}, ["reapeats", "unknown key", "repeats"]),
        ({"repeats": 0}, ["repeats", "0", "greater than or equal to 1"]),
        ({"topologies": ["1n1g", "two"]}, ["topologies", "two", "2n8g"]),
        (
            {"topologies": ["1n512g"], "data": {"name": "embedded", "parts": 512}},
            ["1n512g", "too large", "this machine has"],
        ),
        ({"topologies": ["2n1g"]}, ["2n1g", "too large", "this machine has"]),
        ({"window": {"warmup": 2, "measured": 9}}, ["window", "11", "4 iterations"]),
        ({"suites": [SUITE, SUITE]}, ["small", "twice"]),
        ({"suites": [SUITE | {"workload": "resnet51"}]}, ["resnet51", "resnet50"]),
        ({"suites": [SUITE | {"precision": "fp8"}]}, ["fp8", "fp32", "amp"]),
        ({"suites": [SUITE | {"systems": ["pytorhc"]}]}, ["pytorhc", "pytorch"]),
        ({"data": {"name": "mine", "images": "nowhere"}}, ["nowhere"]),
        ({"data": {"name": "embedded", "parts": 3}}, ["parts", "3", "1n2g"]),
    ],
)
def test_a_wrong_configuration_is_one_line(changes: dict, said: list[str], benchmark: Benchmark):
    benchmark.configure(**changes)
    answer = benchmark.snakemake("-n")
    assert answer.returncode != 0
    snakemakes_own, line = answer.stdout.splitlines()
    assert snakemakes_own.startswith("Using profile local")
    assert line.startswith("reperf: ")
    for word in said:
        assert word in line
    assert not (benchmark.folder / "results").exists()


def test_a_report_for_a_cluster_is_not_run_on_this_machine(benchmark: Benchmark):
    benchmark.configure(cluster={"nodes": 4, "devices_per_node": 8})
    answer = benchmark.snakemake()
    assert answer.returncode != 0
    line = "local/report.yaml: cluster: the report is for one; allowed: --profile slurm"
    assert [said for said in answer.stdout.splitlines() if said.endswith(line)], answer.stdout
    assert "Traceback" not in answer.stdout
    assert not (benchmark.folder / "results").exists()


def test_a_checkout_that_cannot_be_written_is_one_line(benchmark: Benchmark):
    mount = 'mount --bind . . && mount -o remount,bind,ro "$PWD" "$PWD" && cd "$PWD" && exec "$@"'
    alone = ["unshare", "--mount", "sh", "-c", mount, "sh"]
    if benchmark.call(*alone, "true").returncode != 0:
        cannot_run("a file system that root can mount read-only")
    answer = benchmark.call(*alone, *benchmark.command())
    assert answer.returncode != 0
    said = f"reperf: {benchmark.folder}: you may not write there; allowed: a folder where you may"
    assert answer.stdout.splitlines()[-1] == said
    assert "Traceback" not in answer.stdout
