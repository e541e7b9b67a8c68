"""What the doctor's trials say of each build, as the rows of one table."""

from collections.abc import Iterable
from typing import NamedTuple

from reperf.doctor.build_checks import bandwidths, devices_of, loader_speed, neighbour_speed
from reperf.doctor.diagnosis import Diagnosis
from reperf.printed import ABSENT


class BuildRow(NamedTuple):
    """One build as it is on all nodes that answered; the fields' names are the headings."""

    build: str
    starts: str
    devices: str
    convolution: str
    in_a_node: str
    over_nodes: str
    neighbours_in_a_node: str
    neighbours_over_nodes: str
    library: str
    loader: str


HEADINGS = (
    "build",
    "starts",
    "devices of a node",
    "convolution off numpy's",
    "all-reduce in a node",
    "all-reduce over nodes",
    "rank to next rank in a node",
    "rank to next rank over nodes",
    "library",
    "loaders of a node",
)


def build_rows(diagnosis: Diagnosis) -> list[BuildRow]:
    """A row for each system and each of its builds that is made, those that start nowhere last."""
    named = {trial.name: trial.build for trial in diagnosis.trials}
    for visit in diagnosis.visits:
        for build in visit.probe.environments if visit.probe else ():
            if build not in named.values():  # it starts nowhere, and was not tried
                named[build] = build
    return [_row(name, build, diagnosis) for name, build in named.items()]


def _row(name: str, build: str, diagnosis: Diagnosis) -> BuildRow:
    own = [trial for trial in diagnosis.trials if trial.name == name]
    well = [trial for trial in own if not trial.trouble]
    alone = [trial for trial in well if len(trial.nodes) == 1]
    together = [trial for trial in well if len(trial.nodes) > 1]
    ill = [trial.nodes[0] for trial in own if trial.trouble and len(trial.nodes) == 1]
    silent = [
        visit.node
        for visit in diagnosis.visits
        if visit.probe and visit.probe.environments[build].trouble
    ]
    errors = [trial.convolution_error or 0.0 for trial in alone]
    return BuildRow(
        build=name,
        starts=f"not on {', '.join(silent)}" if silent else "yes",
        devices=_joined([*_all(map(devices_of, alone)), *(f"fails on {node}" for node in ill)]),
        convolution=f"{max(errors):.0e}" if errors else ABSENT,
        in_a_node=bandwidths(alone) or ABSENT,
        over_nodes=bandwidths(together) or ABSENT,
        neighbours_in_a_node=neighbour_speed(alone) or ABSENT,
        neighbours_over_nodes=neighbour_speed(together) or ABSENT,
        library=_joined(_all(trial.library for trial in well)),
        loader=loader_speed(alone) or ABSENT,
    )


def _all(texts: Iterable[str]) -> list[str]:
    """Each once, but for empty ones."""
    return [text for text in dict.fromkeys(texts) if text]


def _joined(texts: Iterable[str]) -> str:
    return "; ".join(texts) or ABSENT
