"""Wrong input: one line that says what and where, before any job starts."""

import pytest

from tests.helpers.refusal import cannot_run
from tests.helpers.small_benchmark import SMALL, TOY, Benchmark

SUITE = TOY["suites"][0]

ONE_OF_EACH = [
    ({"reapeats": 3}, "-n", "config.yaml: reapeats: unknown key; allowed: "),
    ({"data": {"name": "mine", "images": "q"}}, "-n", "config.yaml: data.mine: q: no such folder"),
    (
        {},
        "-n --configfile config.yaml site.yaml",
        "site.yaml: 'repeats' appears twice, in lines 2 and 3; allowed: each key once",
    ),
    ({}, "-n --config repeats=0", "config.yaml with --config: repeats: got 0;"),
    ({}, "-n -j 2", "config.yaml: cluster: missing; --profile slurm and --jobs need it"),
    (
        {"cluster": {"nodes": 4, "devices_per_node": 8}},
        "",
        "config.yaml: cluster: the report needs it; allowed: --profile slurm",
    ),
]
"""What the configuration has, what the call asks for, and how it is refused. tests/unit has all
other refusals."""


def test_a_wrong_configuration_is_one_line(benchmark):
    (benchmark.folder / "site.yaml").write_text("title: a\nrepeats: 3\nrepeats: 9\n")
    for changes, call, line in ONE_OF_EACH:
        benchmark.configure(**changes)
        lines = benchmark.refused(*call.split()).splitlines()
        assert lines[0].startswith("Using workflow specific profile profiles/default")
        assert len(lines) == 2 or call != "-n"
        (said,) = [one for one in lines if one.startswith("reperf: ")]
        assert line in said
        assert not (benchmark.folder / "results").exists()


@pytest.mark.long
def test_a_file_without_suites_adds_to_the_report_and_both_are_named(benchmark: Benchmark):
    (benchmark.folder / "site.yaml").write_text("repeats: 3\ndata: {parts: 0}\n")
    answer = benchmark.snakemake("-n", "--configfile", "site.yaml")
    assert "reperf: config.yaml + site.yaml: data.parts: got 0;" in answer.stdout
    (benchmark.folder / "site.yaml").write_text("repeats: 3\ndata: {workers: 3}\n")
    planned = benchmark.planned("--configfile", "site.yaml")["train"]
    runs = benchmark.call("reperf", "runs", "--configfile", "site.yaml").stdout
    assert len(runs.splitlines()) == planned == 7


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
        said = benchmark.refused()
        told = f": failed: {image}: does not start with podman: "
        assert [line for line in said.splitlines() if told in line], said
        assert not list((benchmark.folder / "results/runs").rglob("train.log"))
        assert not list((benchmark.folder / ".images").rglob("environment.json"))


@pytest.mark.long
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
