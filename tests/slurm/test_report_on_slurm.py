"""`snakemake --profile slurm` on a real cluster, with real trainers, whatever happens to them."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path
from threading import Timer

import pandas as pd
import pytest
from reperf.config import load_report
from reperf.configfiles import merged
from reperf.machine import resolve
from reperf.plans.planning import Plans
from reperf.training.places import whole_lines
from reperf.training.slurm import resources_of_job

from tests.helpers import fork_server
from tests.helpers.small_benchmark import ROOT, SMALL
from tests.helpers.small_image import NUMPY, link_image
from tests.slurm.cluster import inside, wait_for
from tests.slurm.slurm_benchmark import LONG, SUITE, SlurmBenchmark, new_slurm_benchmark

TOPOLOGIES = ["1n1g", "2n2g", "4n2g"]
QUOTED = """it's "$HOME" `id` \\n"""
REAL = SMALL["suites"][0] | {"topologies": ["2n2g"], "input": "synthetic", "name": "real"}
PIPELINE = {"system": "pipedream", "parallel": {"pipeline": [3, 1]}}
REPORT = {
    "suites": [SUITE | {"input": "records"}, REAL],
    "topologies": TOPOLOGIES,
    "data": {"name": "embedded", "parts": 8},
    "repeats": 1,
}
# Long enough to be disturbed, on a busy machine, too.
LONGER = SUITE | {"name": "longer", "topologies": ["1n2g"], "shape": {"milliseconds": 3000}}
TABLES, PAGE = "results/summary.csv", "results/report.html"


@pytest.fixture(scope="session")
def report(tmp_path_factory, built_environments, cluster, begun) -> SlurmBenchmark:
    """A report of the stand-in, from records, and of PyTorch."""
    folder = tmp_path_factory.mktemp("report") / "benchmark"
    benchmark = new_slurm_benchmark(folder, built_environments("pytorch"), cluster)
    benchmark.take_over(begun)
    benchmark.configure(**REPORT)
    benchmark.made(PAGE)
    return benchmark


def facts_of(log: str) -> dict:
    lines = re.findall(r"^:::MLLOG (.*)$", log, re.MULTILINE)
    return {event["key"]: event["value"] for event in map(json.loads, lines)}


def test_all_topologies_are_measured_and_only_runs_are_jobs(report):
    cells = report.cells()
    assert list(cells.index) == TOPOLOGIES
    assert set(cells["status"]) == {"ok"}
    assert set(cells["n"]) == {1}
    assert "4n2g" in (report.folder / PAGE).read_text()
    jobs = report.cluster.ask("squeue", "--noheader", "--states=all", "--format=%k|%Z")
    ours = [job.split("|")[0] for job in jobs if job.endswith(f"|{report.folder}")]
    assert len(ours) == len(TOPOLOGIES) + 1
    assert all(job.startswith("rule_train_") for job in ours)
    assert report.planned(PAGE) == {}


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_ranks_are_spread_over_the_nodes_and_end_with_equal_weights(report, topology):
    nodes, devices = int(topology[0]), int(topology[2])
    log = (report.run_folder(topology) / "train.log").read_text()
    places = dict(re.findall(r"rank (\d+): started on (\S+), process", log))
    assert len(places) == nodes * devices
    assert len(set(places.values())) == nodes
    facts = facts_of(log)
    assert facts["world_size"] == nodes * devices
    assert len(facts["weight_digests"]) == nodes * devices
    assert len(set(facts["weight_digests"])) == 1
    record = report.record(topology)
    assert set(record["nodes"]) == set(places.values())
    assert record["nodes"][0] == record["host"]["hostname"] == places["0"]


def test_pytorch_trains_over_several_nodes(report):
    (digest,) = set(digests_over_two_nodes(report, "pytorch"))
    assert digest


@pytest.mark.weekly
def test_a_pipeline_of_pytorch_trains_over_several_nodes(benchmark, built_environments):
    built_environments("pytorch")
    benchmark.configure(suites=[REAL | {"systems": [PIPELINE]}], repeats=1)
    benchmark.made(TABLES)
    *firsts, last = digests_over_two_nodes(benchmark, "pipedream")
    assert len(firsts) == 3
    assert len({*firsts, last}) == 2
    (parallel,) = pd.read_csv(benchmark.folder / TABLES)["parallel"]
    assert parallel == "stages 3 + 1"


def digests_over_two_nodes(benchmark: SlurmBenchmark, system: str) -> list[str]:
    """The digests of the last weights of a good run on 2n2g, rank by rank."""
    cells = pd.read_csv(benchmark.folder / TABLES).set_index("system")
    assert cells.loc[system, "status"] == "ok"
    (run,) = benchmark.folder.glob(f"results/runs/real/{system}*/2n2g/1/train.log")
    log = run.read_text()
    places = re.findall(r"rank \d+(?: \(stage \d\))?: started on (\S+), process", log)
    assert (len(places), len(set(places))) == (4, 2)
    return facts_of(log)["weight_digests"]


def test_a_killed_workflow_is_taken_up_where_it_was(tmp_path, report):
    report = SlurmBenchmark(report.copied(tmp_path / "benchmark").folder, report.cluster)
    before = {topology: report.record(topology) for topology in TOPOLOGIES}
    report.configure(**REPORT | {"suites": [*REPORT["suites"], LONGER]})

    with report.started(*report.command(TABLES)) as snakemake:
        report.wait_for_log("1n2g", r"(started) on")
        lost = report.job_of("1n2g")
        snakemake.send_signal(signal.SIGKILL)
        snakemake.communicate(timeout=20)
    assert report.cluster.state_of(lost) == "RUNNING"

    with report.started(*report.command(TABLES)) as snakemake:
        report.wait_for_log("1n2g", r"(started) on", attempt=2)
        assert report.cluster.state_of(lost) == "CANCELLED"
        stopped = report.job_of("1n2g")
        os.killpg(snakemake.pid, signal.SIGINT)
        snakemake.communicate(timeout=60)
    wait_for(lambda: report.cluster.state_of(stopped) == "CANCELLED", "the job to be cancelled")
    report.wait_until_nobody_trains()
    assert not (report.run_folder("1n2g") / "run.json").exists()

    report.made(TABLES)
    assert report.cells().loc["1n2g", "n"] == 1
    assert {topology: report.record(topology) for topology in TOPOLOGIES} == before


def test_bad_ends_are_named_and_the_others_go_on(benchmark, begun):
    benchmark.take_over(begun)

    def suite(topology: str, **shape: int) -> dict:
        return SUITE | {"name": f"on-{topology}", "topologies": [topology], "shape": shape}

    # All at once. The toy tells its last rank to die, or to hang; Slurm cancels another job.
    benchmark.configure(
        suites=[
            suite("1n1g", milliseconds=20_000),
            suite("1n2g", hangs=2),
            suite("2n1g", dies=2),
            suite("2n2g"),
        ],
        repeats=1,
        time_limit=30,
    )
    with benchmark.started(*benchmark.command("--retries", "0")) as snakemake:
        benchmark.wait_for_log("1n1g", r"(started) on")
        benchmark.cluster.run(["scancel", benchmark.job_of("1n1g")])
        said, _ = snakemake.communicate(timeout=600)
    assert snakemake.returncode == 1, said
    benchmark.wait_until_nobody_trains()
    topologies = ["1n1g", "1n2g", "2n1g", "2n2g"]
    cancelled, hung, died, whole = map(benchmark.record, topologies)
    statuses = [one["status"] for one in (cancelled, hung, died, whole)]
    assert statuses == ["failed", "timeout", "failed", "ok"]
    ended = rf"Slurm's job {cancelled['slurm_job']} on node\d: CANCELLED"
    assert re.match(ended, cancelled["reason"])
    assert re.search(f"1n1g, repeat 1: failed: {ended}", said)
    assert "stopped from outside: SIGTERM; rank 0 of 1 was last heard of" in cancelled["reason"]
    assert re.match(r"no end after 30 s; .* last heard of at iteration 2,", hung["reason"])
    assert "SIGKILL" in died["reason"]
    # What Slurm ended is no end for Snakemake: the tables come with the next call.
    benchmark.made("--retries", "0", TABLES)
    assert list(benchmark.cells()["status"]) == statuses
    assert benchmark.record("2n2g") == whole


def test_a_lost_node_and_slurms_own_limit_are_named(benchmark, begun):
    benchmark.take_over(begun)
    topologies = ["1n1g", "2n1g"]
    benchmark.configure(topologies=topologies, repeats=1, iterations=100_000, time_limit=1200)
    with benchmark.started(*benchmark.command("--retries", "0")) as snakemake:
        for topology in topologies:
            benchmark.rank(topology, 0)
        late, broken = map(benchmark.job_of, topologies)
        # Slurm's limits are whole minutes, but this one is soon over; "now" may be past already.
        benchmark.cluster.run(["scontrol", "update", f"JobId={late}", "EndTime=now+3"])
        lost = benchmark.cluster.nodes_of(broken)[0]
        benchmark.cluster.kill_node(lost)
        said, _ = snakemake.communicate(timeout=300)
    assert snakemake.returncode == 1, said
    assert benchmark.cluster.state_of(late) == "TIMEOUT"
    benchmark.wait_until_nobody_trains()
    records = [
        json.loads((benchmark.run_folder(one) / "tries/1/run.json").read_text())
        for one in topologies
    ]
    assert [record["status"] for record in records] == ["timeout", "failed"]
    reasons = [record["reason"] for record in records]
    assert re.match(rf"Slurm's job {late} on node\d: TIMEOUT, TimeLimit", reasons[0])
    assert "; stopped from outside: SIGTERM; rank 0" in reasons[0]
    assert re.match(rf"Slurm's job {broken} on node\[\S+\]: NODE_FAIL, NodeDown", reasons[1])
    assert f"; {lost} is down* (Not responding" in reasons[1]
    for reason in reasons:
        assert reason.partition(";")[0] in said
    assert "onsider enabling" not in said


def test_a_run_is_trained_as_it_was_planned(benchmark, begun):
    benchmark.take_over(begun)
    benchmark.configure(topologies=["1n1g"], repeats=1)
    nodes = f"NodeName={','.join(benchmark.cluster.nodes)}"
    benchmark.cluster.run(["scontrol", "update", nodes, "State=DRAIN", "Reason=trial"])
    try:
        soon = ("--slurm-shell-seconds-to-wait", "1", "--", TABLES)
        with benchmark.started(*benchmark.command(*soon)) as snakemake:
            in_vain = Timer(LONG, snakemake.kill)
            in_vain.start()
            waits = r"a job has waited for more than 1 s; Slurm says: (ReqNodeNotAvail|Nodes req)"
            assert any(re.match(waits, line) for line in snakemake.stdout)
            in_vain.cancel()
            benchmark.configure(topologies=["1n1g"], repeats=1, seed=5)
            benchmark.cluster.run(["scontrol", "update", nodes, "State=RESUME"])
            said, _ = snakemake.communicate(timeout=300)
    finally:
        benchmark.cluster.run(["scontrol", "update", nodes, "State=RESUME"], check=False)
    assert snakemake.returncode == 0, said
    assert benchmark.record("1n1g")["run"]["seed"] == 1
    assert benchmark.planned()["train"] == 1


@pytest.mark.image
def test_ranks_on_two_nodes_train_in_the_images_of_each_with_the_configured_variables(
    benchmark, stand_in_image, tmp_path, monkeypatch
):
    # Podman's own files must not be another node's; /run is a node's own.
    (tmp_path / "storage.conf").write_text(
        '[storage]\ndriver = "overlay"\nrunroot = "/run/podman"\ngraphroot = "/run/podman/images"\n'
    )
    monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(tmp_path / "storage.conf"))
    # It lacks nothing, because the cluster has no network to get it from.
    image = link_image(stand_in_image, tmp_path / "image", ["idna"])
    benchmark.configure(
        topologies=["2n1g"],
        repeats=1,
        images={"stand-in": str(image)},
        container={"engine": "podman", "options": ["--hostname=inside"]},
        cluster={
            "nodes": 4,
            "devices_per_node": 8,
            "partition": "gpu",
            "memory_mb": 8000,
            # The executor that ours extends takes none of these.
            "options": ["--gres=gpu:3", "--constraint=quick"],
            "variables": {"NCCL_DEBUG": QUOTED},
        },
    )
    benchmark.made("results/runs/small/stand-in/2n1g/1/run.json")
    record = benchmark.record("2n1g")
    assert record["status"] == "ok"
    assert len(record["nodes"]) == 2
    assert record["variables"]["NCCL_DEBUG"] == QUOTED
    assert record["environment"]["framework"] == NUMPY
    assert record["environment"]["overlay"] == {}
    assert not any(".envs" in word for word in record["command"])
    log = (benchmark.run_folder("2n1g") / "train.log").read_text()
    assert len(re.findall(r"rank \d: started on inside, process", log)) == 2
    asked = ["squeue", "--noheader", "--states=all", "--format=%f|%b|%m|%Z"]
    assert f"quick|gres:gpu:3|8000M|{benchmark.folder}" in benchmark.cluster.ask(*asked)


@pytest.mark.weekly
def test_an_environment_that_is_another_one_on_a_node_is_refused_by_the_nodes_name(
    benchmark, older, tmp_path
):
    (tmp_path / "more/more.dist-info").mkdir(parents=True)
    (tmp_path / "more/more.dist-info/METADATA").write_text("Name: more\nVersion: 1.0\n")
    for other, code in (("none", 0), ("node2", 1)):
        only = f'test "$SLURMD_NODENAME" != {other} || export PYTHONPATH={tmp_path}/more'
        benchmark.configure(
            topologies=["2n1g"],
            repeats=1,
            environment={"python": str(older), "before": only},
            cluster={"nodes": 4, "devices_per_node": 8, "options": ["--nodelist=node[1-2]"]},
        )
        target = "results/runs/small/stand-in/2n1g/1/run.json"
        answer = benchmark.snakemake("--retries", "0", target)
        assert answer.returncode == code, answer.stdout
    said = "node2 has other packages than node1: more 1.0 for none; allowed: the same packages on"
    assert said in answer.stdout


def test_long_lines_come_whole_out_of_srun(cluster):
    # srun tells each task that its input has ended. Where a task ends before it has heard of that,
    # the connection is reset, and what srun had no room for yet is lost; so listen first.
    program = (
        "import os, sys; sys.stdin.read(); "
        "[os.write(1, b'%d:' % n + b'x' * n + b'\\n') for n in range(1010, 3100, 7)]"
    )
    srun = ["srun", "--nodes=2", "--ntasks=2", "--label", "python3", "-c", program]
    said = cluster.run(srun, stdin=subprocess.DEVNULL).stdout.encode().splitlines(keepends=True)
    expected = sorted(
        b"%d: %d:" % (node, n) + b"x" * n + b"\n" for node in (0, 1) for n in range(1010, 3100, 7)
    )
    assert len(said) > len(expected)
    assert sorted(whole_lines(said)) == expected


def test_what_the_runs_of_the_whole_published_matrix_ask_for_fits(cluster):
    files = "reports/dlperf.yaml", "site.yaml"
    matrix = merged(ROOT / file for file in files)
    for data in matrix["data"]:
        data["embedded_on_gpus"] = True
    report = resolve(load_report(matrix))
    plans = {plan.run.topology: plan for plan in Plans(report).runs.values()}
    assert {*plans} == {*report.topologies}
    resources = resources_of_job(report, plans.values(), plans.get)
    for topology in plans:
        asked = {
            name: value(topology) if callable(value) else value for name, value in resources.items()
        }
        cluster.run(
            [
                *("sbatch", "--test-only", f"--ntasks={asked['tasks']}"),
                *(f"--cpus-per-task={asked['cpus_per_task']}", f"--time={asked['runtime']}"),
                *(*shlex.split(asked["sbatch_options"]), "--wrap=true"),
            ]
        )


def test_what_the_cluster_cannot_run_is_one_line(benchmark):
    """Refusals that need no answer from the cluster are tested in tests/unit."""
    jobs = ["squeue", "--noheader", "--states=all", "--format=%i"]
    before = benchmark.cluster.ask(*jobs)
    for changes, options, line in (
        ({"partition": "cpu"}, (), "reperf: cluster.partition: cpu; allowed: gpu"),
        ({}, ("--slurm-shell-array-jobs", "train"), "slurm-shell-array-jobs: train; allowed: none"),
    ):
        benchmark.configure(cluster={"nodes": 4, "devices_per_node": 8} | changes)
        said = benchmark.refused(*options).splitlines()
        assert [one for one in said if one == line or (options and line in one)], said
    assert benchmark.cluster.ask(*jobs) == before


def test_a_folder_in_this_machines_memory_is_refused(benchmark):
    # Every machine of the cluster has a /dev/shm of its own.
    home = Path("/dev/shm/benchmark")
    subprocess.run(
        inside(benchmark.cluster.controller, ["cp", "-a", benchmark.folder, home]), check=True
    )
    answer = benchmark.cluster.run(
        ["sh", "-c", f"cd {home}; exec python3 -m snakemake --profile slurm"],
        env=benchmark.environment | {"PYTHONPATH": f"{home}/workflow"},
        check=False,
    )
    assert answer.returncode == 1
    assert f"reperf: {home}: not shared with the cluster's nodes: tmpfs is" in answer.stderr


@pytest.mark.parametrize("slurm", ["absent", "silent"])
def test_without_slurm_there_is_one_line(benchmark, slurm):
    """Outside of the cluster's namespaces no controller answers; on no path is no Slurm at all.

    A dry run asks none.
    """
    environment = dict(benchmark.environment)
    if slurm == "absent":
        tools = benchmark.folder / "tools"
        tools.mkdir()
        for name in ("bash", "env", "sh", "git", "which"):
            (tools / name).symlink_to(shutil.which(name))
        environment["PATH"] = str(tools)
    planned, answer = (
        fork_server.run(benchmark.command(*words)[2:], benchmark.folder, environment, 300)
        for words in (["--dry-run"], [])
    )
    assert planned.returncode == 0, planned.stdout
    assert answer.returncode == 1
    said = "no Slurm on this machine: sbatch not found" if slurm == "absent" else "Slurm: "
    lines = [line for line in answer.stdout.splitlines() if line.startswith("reperf: ")]
    assert [line for line in lines if said in line], answer.stdout
    assert "Traceback" not in answer.stdout
