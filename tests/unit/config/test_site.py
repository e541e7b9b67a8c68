"""What a report says of the hosts that train it."""

import pytest
from reperf.config import Report
from reperf.config.site import Cluster, hosts_in
from reperf.validation import checked

from tests.helpers.refusal import refused_in_one_line

TWO = ("node1", "node2")


@pytest.mark.parametrize(
    "lines",
    [
        "# of MPI\nnode1 slots=8\n\nnode2:8 # the second\n",
        "node1\nnode1\nnode2\nnode2\n",
    ],
)
def test_a_host_file_names_each_host_once(tmp_path, monkeypatch, lines):
    file = tmp_path / "hosts"
    file.write_text(lines)
    monkeypatch.setenv("PBS_NODEFILE", str(file))
    monkeypatch.setenv("SKYPILOT_NODE_IPS", lines)
    for name in (str(file), "$PBS_NODEFILE", "$SKYPILOT_NODE_IPS"):
        assert hosts_in(name) == TWO
    cluster = Cluster.model_validate({"hostfile": str(file), "devices_per_node": 8})
    assert (cluster.hosts, cluster.nodes) == (TWO, 2)
    assert Cluster.model_validate(cluster.model_dump()) == cluster


def test_all_hosts_are_the_nodes_unless_a_number_is_given():
    one = Cluster.model_validate({"hosts": TWO, "nodes": 1, "devices_per_node": 8})
    assert (one.nodes, one.reached()) == (1, {"remote": "ssh", "hosts": TWO})


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"hosts": TWO, "nodes": 3}, ": nodes: got 3 of 2 hosts; allowed: fewer"),
        ({"hosts": ["a", "a"]}, ": hosts: a appears twice; allowed: each host once"),
        ({"hosts": ["-oProxyCommand=x"]}, ".hosts.-oProxyCommand=x: got '-oProxyCommand=x'"),
        ({"hosts": TWO, "partition": "gpu"}, ": partition: Slurm's, but these are hosts; allowed"),
        ({"hosts": TWO, "hostfile": "x"}, ": hostfile: got one beside hosts; allowed: either"),
        ({"hostfile": "/no/such"}, ": hostfile: /no/such: cannot be read: No such file or direct"),
        ({"hostfile": "$NO_SUCH"}, ": hostfile: $NO_SUCH is not set here; allowed: a file, or"),
        ({"hostfile": "/dev/null"}, ": hostfile: /dev/null names no host; allowed: a host a line"),
        ({"hosts": TWO, "remote": "ssh '"}, '.remote: got "ssh \'"; no closing quotation; allow'),
        ({}, ".nodes: is missing"),
    ],
)
def test_other_hosts_are_one_line(keys, line):
    content = {"cluster": keys | {"devices_per_node": 8}, "suites": []}
    with refused_in_one_line(f"mine.yaml: cluster{line}"):
        checked(Report, content, "mine.yaml")
