"""Parameter servers stand beside trainers on each node of a job."""

import json
import re

from tests.helpers.servers import SHAPE, SYSTEM, follow_pages
from tests.slurm.slurm_benchmark import SUITE, new_slurm_benchmark


def test_servers_and_trainers_share_nodes_and_a_server_or_a_node_that_is_lost_is_seen(
    tmp_path, environments, cluster, begun
):
    benchmark = new_slurm_benchmark(tmp_path / "benchmark", environments, cluster)
    benchmark.take_over(begun)
    benchmark.entry = f"{SYSTEM}+servers-1"
    follow_pages(benchmark.folder, shares="stand-in")
    suite = SUITE | {"workload": "softmax", "batch_size": 8, "shape": SHAPE, "systems": [SYSTEM]}
    many = suite | {"systems": [{"system": SYSTEM, "servers": {"threads": 1000}}]}
    benchmark.configure(suites=[many], topologies=["2n1g"])
    said = benchmark.snakemake().stdout
    assert "servers-1x1000 on 2n1g needs 1001 CPUs a node: 0 of 4 nodes of partition" in said

    # Long enough to be disturbed.
    benchmark.configure(
        suites=[suite], topologies=["2n1g"], repeats=1, iterations=150, time_limit=150
    )

    asked = benchmark.command("--retries", "2", "results/summary.csv")
    with benchmark.started(*asked) as snakemake:
        benchmark.wait_for_log("2n1g", r"server 1: iteration (\d)")
        job = benchmark.job_of("2n1g")
        (cpus,) = cluster.ask("squeue", "--noheader", f"--job={job}", "--format=%c")
        (server,) = [one for one in benchmark.trainers() if one.environ().get("SERVER") == "1"]
        killed_on = cluster.nodes_of(job)[1]
        server.kill()

        benchmark.wait_for_log("2n1g", r"server 1: iteration (\d)", attempt=2)
        lost = cluster.nodes_of(benchmark.job_of("2n1g"))[1]
        cluster.kill_node(lost)
        said, _ = snakemake.communicate(timeout=300)
    assert snakemake.returncode == 0, said
    benchmark.wait_until_nobody_trains()
    assert cpus == "2"  # a node, at least: one for its trainer, one for its server
    killed = json.loads((benchmark.run_folder("2n1g") / "tries/1/run.json").read_text())
    assert killed["reason"].startswith(
        f"server 1 on {killed_on} ended with SIGKILL, before the trainers; "
    )

    record = benchmark.record("2n1g")
    assert (record["status"], lost in record["nodes"]) == ("ok", False)
    assert "--overlap" in record["command"]
    assert "--overlap" in record["servers_command"]
    log = (benchmark.run_folder("2n1g") / "train.log").read_text()
    for role in ("rank", "server"):
        places = dict(re.findall(rf"{role} (\d): started on (\S+), process", log))
        assert [places["0"], places["1"]] == record["nodes"]
    assert benchmark.cells().loc["2n1g", "servers"] == "1 server a node"
