"""The pods in which a report trains."""

import pytest
import yaml
from reperf.cli import main
from reperf.config.site import Cluster

GIVEN = ("manifest", "kubernetes", "--image", "registry.example.com/bench:1", "--volume", "bench")


@pytest.fixture(autouse=True)
def report(tmp_path, monkeypatch):
    """The report that a call makes by itself, of two nodes with four devices each."""
    monkeypatch.chdir(tmp_path)
    report = {"title": "pods", "topologies": ["1n1g", "1n4g", "2n1g"], "suites": []}
    suite = {"name": "small", "workload": "resnet50", "precision": "fp32", "batch_size": 8}
    report["suites"] = [suite | {"input": "synthetic", "systems": ["pytorch"]}]
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(report))


def manifest(capsys, *options: str, namespace: str = "default") -> tuple[Cluster, dict, dict]:
    """What site.yaml is to say, the job that each pod has, and the specification of a pod."""
    assert main([*GIVEN, *options]) == 0
    text = capsys.readouterr().out
    lines = [line[2:] for line in text.splitlines() if line.startswith("# ")]
    site = yaml.safe_load("\n".join(lines[lines.index("  cluster:") :][:4]))
    everything = list(yaml.safe_load_all(text))
    documents = {one["kind"]: one for one in everything}
    assert {one["metadata"]["namespace"] for one in everything} == {namespace}
    (pods,) = documents["JobSet"]["spec"]["replicatedJobs"]
    cluster = Cluster.model_validate(site["cluster"])
    assert [one["metadata"]["name"] for one in everything if one["kind"] == "Service"] == [
        *cluster.hosts
    ]
    return cluster, pods, pods["template"]["spec"]["template"]["spec"]


def test_the_pods_are_the_hosts_and_have_what_the_report_uses(capsys):
    cluster, pods, pod = manifest(capsys)
    assert cluster.hosts == ("reperf-node-0", "reperf-node-1")
    assert (pods["replicas"], cluster.devices_per_node) == (2, 4)
    (node,) = pod["containers"]
    assert node["resources"] == {"limits": {"nvidia.com/gpu": 4}}
    assert {one["name"] for one in node["volumeMounts"]} == {one["name"] for one in pod["volumes"]}
    assert pod["volumes"][0]["persistentVolumeClaim"] == {"claimName": "bench"}


def test_options_change_number_gpus_ports_and_namespace(capsys):
    options = ("--nodes", "3", "--gpus", "0", "--rdma", "rdma/ib", "--namespace", "team")
    cluster, pods, pod = manifest(capsys, *options, namespace="team")
    assert len(cluster.hosts) == pods["replicas"] == 3
    assert pod["containers"][0]["resources"] == {"limits": {"rdma/ib": 1}}


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--rdma", "ib"), "--rdma: got 'ib'; allowed: one such as rdma/ib"),
        (("--volume", "A b"), "--volume: got 'A b'; allowed: one such as reperf"),
        (("--image", 'x"'), "--image: got 'x\"'; allowed: one such as python:3.12-bookworm"),
        (("--gpus", "-1"), "--gpus: got '-1'; allowed: a whole number above 0"),
    ],
)
def test_other_options_are_one_line(capsys, options, line):
    with pytest.raises(SystemExit):
        main([*GIVEN, *options])
    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == 1
