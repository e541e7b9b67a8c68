"""`reperf manifest`: the pods in which a report trains, see docs/hosts.md."""

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from string import Template

from reperf.commands import ask_for_files, count
from reperf.config.words import topology_shape
from reperf.configfiles import read_report

_MANIFEST, _SERVICE = (
    Template(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    for name in ("jobset.yaml.template", "service.yaml.template")
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.description = (
        "Print a Kubernetes JobSet of as many pods as the report has nodes, with the GPUs that it "
        "wants on each, and the lines of site.yaml that train on them."
    )
    parser.add_argument("kind", choices=("kubernetes",))
    ask_for_files(parser, "instead of the report that snakemake makes by itself")
    name = _matching(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "reperf")
    parser.add_argument(
        "--image",
        required=True,
        type=_matching(r"[\w./:@-]+", "python:3.12-bookworm"),
        help="the pods' image, with Python 3.11 or later, git, make and kubectl",
    )
    claim = "the claim of the volume that all pods share, ReadWriteMany"
    parser.add_argument("--volume", required=True, type=name, metavar="CLAIM", help=claim)
    parser.add_argument("--namespace", type=name, default="default", help="default: default")
    parser.add_argument("--nodes", type=count, metavar="N", help="pods; default: the report's most")
    parser.add_argument(
        "--gpus",
        type=lambda text: 0 if text == "0" else count(text),
        metavar="N",
        help="of a pod, 0 for none; default: the report's most on a node",
    )
    parser.add_argument(
        "--rdma",
        type=_matching(r"[a-z0-9.-]+/[\w.-]+", "rdma/ib"),
        metavar="RESOURCE",
        help="what the cluster's device plugin calls an InfiniBand port, such as rdma/ib",
    )
    parser.set_defaults(run=run)


def _matching(pattern: str, example: str) -> Callable[[str], str]:
    def matched(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise argparse.ArgumentTypeError(f"got {text!r}; allowed: one such as {example}")
        return text

    return matched


def run(options: argparse.Namespace) -> int:
    """Print the manifest."""
    report, _ = read_report(options.configfile)
    shapes = [topology_shape(topology) for _, topology in report.asked]
    nodes, devices = map(max, zip((1, 1), *shapes, strict=True))
    nodes = options.nodes or nodes
    names = [f"reperf-node-{number}" for number in range(nodes)]
    limits = {"nvidia.com/gpu": devices if options.gpus is None else options.gpus}
    limits |= {options.rdma: 1} if options.rdma else {}
    values = {
        "hosts": ", ".join(names),
        "services": "".join(
            _SERVICE.substitute(name=name, number=number, namespace=options.namespace)
            for number, name in enumerate(names)
        ),
        "nodes": nodes,
        "devices": options.gpus or devices,
        "limits": ", ".join(f"{name}: {number}" for name, number in limits.items() if number),
    }
    print(_MANIFEST.substitute(vars(options) | values), end="")
    return 0
