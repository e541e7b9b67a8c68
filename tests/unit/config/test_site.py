"""What a report says of the hosts that train it."""

import pytest
from reperf.config.site import Cluster, hosts_in

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
