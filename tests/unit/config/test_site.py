"""What a report says of the hosts that train it."""

import pytest
from reperf.config import Report
from reperf.config.site import Cluster, hosts_in
from reperf.errors import ReperfError
from reperf.validation import checked

TWO = ("node1", "node2")


@pytest.mark.parametrize(
    "lines",
    [
        "node1\nnode2\n",
        "# of MPI\nnode1 slots=8\n\nnode2:8 # the second\n",
        "node1\nnode1\nnode2\nnode2\n",
    ],
)
def test_a_host_file_names_each_host_once(tmp_path, monkeypatch, lines):
    file = tmp_path / "hosts"
    file.write_text(lines)
    assert hosts_in(str(file)) == TWO
    monkeypatch.setenv("PBS_NODEFILE", str(file))
    assert hosts_in("$PBS_NODEFILE") == TWO
    monkeypatch.setenv("SKYPILOT_NODE_IPS", lines)
    assert hosts_in("$SKYPILOT_NODE_IPS") == TWO


def test_all_hosts_are_the_nodes_unless_a_number_is_given(tmp_path):
    file = tmp_path / "hosts"
    file.write_text("node1\nnode2\n")
    cluster = Cluster.model_validate({"hostfile": str(file), "devices_per_node": 8})
    assert (cluster.hosts, cluster.nodes) == (TWO, 2)
    assert Cluster.model_validate(cluster.model_dump()) == cluster
    one = Cluster.model_validate({"hosts": TWO, "nodes": 1, "devices_per_node": 8})
    assert (one.nodes, one.reached()) == (1, {"remote": "ssh", "hosts": TWO})


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"hosts": TWO, "nodes": 3}, "cluster: nodes: got 3 of 2 hosts; allowed: fewer"),
        ({"hosts": ["a", "a"]}, "cluster: hosts: a appears twice; allowed: each host once"),
        ({"hosts": ["-oProxyCommand=x"]}, "cluster.hosts.-oProxyCommand=x: got '-oProxyCommand=x'"),
        ({"hosts": TWO, "partition": "gpu"}, "cluster: partition: Slurm's, but these are hosts"),
        ({"hosts": TWO, "hostfile": "x"}, "cluster: hostfile: got one beside hosts; allowed: eit"),
        ({"hostfile": "/no/such"}, "hostfile: /no/such: cannot be read: No such file or directory"),
        ({"hostfile": "$NO_SUCH"}, "hostfile: $NO_SUCH is not set here; allowed: a file, or"),
        ({"hosts": TWO, "remote": "ssh '"}, """got "ssh '"; no closing quotation; allowed: a"""),
        ({"hostfile": "/dev/null"}, "hostfile: /dev/null names no host; allowed: a host a line"),
        ({}, "cluster.nodes: is missing"),
    ],
)
def test_other_hosts_are_one_line(keys, line):
    content = {"cluster": keys | {"devices_per_node": 8}, "suites": []}
    with pytest.raises(ReperfError) as error:
        checked(Report, content, "mine.yaml")
    assert line in str(error.value)
    assert "\n" not in str(error.value)
