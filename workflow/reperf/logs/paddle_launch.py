"""What PaddlePaddle's launcher prints about the devices before it starts the ranks.

    LAUNCH INFO 2023-07-28 07:49:49,627 devices: 0,1,2,3,4,5,6,7
    LAUNCH INFO 2023-07-28 07:49:49,628 nnodes: 1

Source: github.com/PaddlePaddle/Perf at e7a07c4, ResNet50V1.5/logs/V100-LOG.
"""

import re
from collections.abc import Iterator

from reperf.logs.facts import Fact

_SAID = re.compile(
    rb"LAUNCH INFO [^\r\n]{1,30} (?:devices: (?P<devices>\d{1,4}(?:,\d{1,4}){0,1000})"
    rb"|nnodes: (?P<nodes>\d{1,6}))\s"
)


def launched(head: bytes) -> Iterator[Fact]:
    """The devices of a node, and the nodes, in the text before a run."""
    for match in _SAID.finditer(head):
        if match["devices"]:
            yield "devices_per_node", match["devices"].count(b",") + 1
        elif int(match["nodes"]) > 0:
            yield "nodes", int(match["nodes"])
