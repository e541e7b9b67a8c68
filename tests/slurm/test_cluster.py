"""The test cluster does what a real one does, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.slurm.cluster import HERE, SlurmCluster, controller_of, inside, wait_for


def submit(cluster: SlurmCluster, *options: str) -> str:
    """Submit a job that runs until it is ended; returns its number once all its tasks run."""
    started = cluster.folder / "log/job-%j.out"
    command = "srun sh -c 'hostname; exec sleep 1000'"
    (job,) = cluster.ask(
        "sbatch", "--parsable", f"--output={started}", *options, f"--wrap={command}"
    )
    started = started.with_name(f"job-{job}.out")

    def runs() -> bool:
        nodes = cluster.nodes_of(job)
        return nodes != [] and started.exists() and set(started.read_text().split()) == set(nodes)

    wait_for(runs, f"job {job} to run")
    return job


def test_two_jobs_share_the_gpus_of_a_node(cluster):
    jobs = [submit(cluster, "--nodelist=node1", "--gpus-per-node=4") for _ in range(2)]
    waits = cluster.ask(
        *("sbatch", "--parsable", "--output=/dev/null", "--nodelist=node1"),
        *("--gpus-per-node=1", "--wrap=true"),
    )[0]
    assert [cluster.nodes_of(job) for job in jobs] == [["node1"], ["node1"]]
    assert cluster.state_of(waits) == "PENDING"
    cluster.run(["scancel", jobs[0]])
    wait_for(lambda: cluster.state_of(waits) == "COMPLETED", "the waiting job")


def test_a_killed_node_goes_down_fails_its_job_and_comes_back(cluster):
    job = submit(cluster, "--nodes=2", "--no-requeue")
    lost = cluster.nodes_of(job)[1]
    cluster.kill_node(lost)
    wait_for(lambda: cluster.states()[lost] == "down*", f"{lost} to be down", 60)
    wait_for(lambda: cluster.state_of(job) == "NODE_FAIL", f"job {job} to fail")
    cluster.revive_node(lost)
    cluster.wait_idle()


@pytest.mark.weekly
def test_only_ci_insists_on_a_cluster(tmp_path):
    """Without Slurm's commands the tests are skipped and say why; in CI they fail."""
    (tmp_path / "test_it.py").write_text("def test_it(cluster): pass")
    (tmp_path / "conftest.py").write_text((HERE / "conftest.py").read_text())
    for ci, status, outcome in (("false", 0, "SKIPPED"), ("true", 1, "ERROR")):
        answer = subprocess.run(
            [sys.executable, "-m", "pytest", "-rsE", "-p", "no:cacheprovider", tmp_path],
            env={"PATH": "/nowhere", "CI": ci, "PYTHONPATH": str(HERE.parents[1])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert answer.returncode == status
        assert outcome in answer.stdout
        assert "needs a Slurm cluster: " in answer.stdout


@pytest.fixture
def folder(cluster, tmp_path):
    """Where cluster.py may bring up one more cluster, beside the session's, which shows it can."""
    yield tmp_path / "own"
    script(tmp_path / "own", "down")


def script(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run cluster.py; whatever it starts has the folder's name in its environment."""
    return subprocess.run(
        [sys.executable, HERE / "cluster.py", f"--folder={folder}", *arguments],
        env=os.environ | {"folder": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def outside() -> dict[str, object]:
    """Where a cluster could leave something behind, beside its processes and its folder."""
    settings = [file for name in ("/etc/slurm", "/etc/munge") for file in Path(name).rglob("*")]
    return {
        "mounts": Path("/proc/self/mounts").read_text(),
        "interfaces": sorted(path.name for path in Path("/sys/class/net").iterdir()),
        "named namespaces": subprocess.check_output(["ip", "netns", "list"]),
        "host names": [os.uname().nodename, Path("/etc/hosts").read_text()],
        "settings": {file: file.lstat().st_mtime_ns for file in settings},
        "sockets and devices": sorted(Path("/run").iterdir()),
    }


def inhabitants(folder: Path) -> list[str]:
    """The command lines of the daemons and jobs of the cluster in a folder, and of its keeper."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("folder") == str(folder):
                found.append(" ".join(process.cmdline()))
    return found


def nobody_is_left(folder: Path) -> None:
    wait_for(lambda: not inhabitants(folder), "the last process to end", 5)


def test_down_leaves_nothing_behind(folder):
    before = outside()
    assert script(folder, "up").returncode == 0
    script(folder, "run", "sbatch", "--output=/dev/null", "--nodes=4", "--wrap=srun sleep 1000")
    wait_for(lambda: any("sleep 1000" in line for line in inhabitants(folder)), "the job")
    assert script(folder, "down").returncode == 0
    nobody_is_left(folder)
    assert outside() == before
    assert not folder.exists()


def test_a_node_of_a_cluster_that_stays_is_killed_and_revived_by_name(folder):
    assert script(folder, "up").returncode == 0
    controller = controller_of(folder)

    def is_there() -> bool:
        links = subprocess.check_output(inside(controller, ["ip", "link"]), text=True)
        return "node2@" in links

    assert is_there()
    for verb, there in (("kill", False), ("kill", False), ("revive", True), ("revive", True)):
        assert script(folder, verb, "node2").returncode == 0
        assert is_there() == there
    assert script(folder, "run", "srun", "--nodelist=node2", "hostname").stdout == "node2\n"
    said = script(folder, "kill", "node9")
    assert said.returncode == 1
    assert "node9: no node; allowed: node1, node2, node3, node4" in said.stderr


@pytest.mark.weekly
def test_a_killed_node_and_a_forgotten_command_leave_nothing_behind(folder, monkeypatch):
    before = outside()
    monkeypatch.setenv("folder", str(folder))
    with SlurmCluster(folder, nodes=2) as cluster:
        submit(cluster, "--nodes=2")
        cluster.kill_node("node2")
        forgotten = cluster.popen(["sleep", "1000"])
        wait_for(lambda: psutil.Process(forgotten.pid).name() == "sleep", "the command to start")
    assert forgotten.wait(5) == -signal.SIGKILL
    nobody_is_left(folder)
    assert outside() == before


@pytest.mark.weekly
def test_a_cluster_dies_with_the_process_that_keeps_it(folder):
    before = outside()
    for _ in range(2):  # the second time over what the first one left in the folder
        assert script(folder, "up").returncode == 0
        assert script(folder, "run", "srun", "--nodes=4", "hostname").returncode == 0
        keeper = psutil.Process(controller_of(folder)).parent()
        keeper.kill()
        nobody_is_left(folder)
        assert outside() == before
        assert script(folder, "status").returncode == 1


@pytest.mark.weekly
@pytest.mark.parametrize("seconds", [0.05, 0.35])
def test_down_and_up_take_over_from_an_up_that_was_killed(folder, seconds):
    for verb in ("down", "up"):
        up = subprocess.Popen(
            [sys.executable, HERE / "cluster.py", f"--folder={folder}", "up"],
            env=os.environ | {"folder": str(folder)},
        )
        time.sleep(seconds)
        up.kill()
        up.wait()
        assert script(folder, verb).returncode == 0
        if verb == "down":
            nobody_is_left(folder)
    hosts = script(folder, "run", "srun", "--nodes=4", "hostname").stdout.split()
    assert sorted(hosts) == ["node1", "node2", "node3", "node4"]
