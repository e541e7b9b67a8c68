"""Which colour a system has: the same in every figure, whatever is drawn beside it.

A system's colour is stated in its system.yaml. A system that states none, or that is known only
from a log or a publication, gets the spare colour that its id's checksum points to. Neither depends
on other systems: adding one recolours none, and an archived figure rebuilds to the same bytes.

The stated colours were found by a search that kept every pair 12 CIEDE2000 apart for deuteranopes
and protanopes and their lightness 3 L* apart, between 38 and 75: they differ in grey, and stand out
from white and from near-black paper. tests/unit/drawing/test_figures.py checks that they do.
"""

from zlib import crc32

from reperf.systems import load_systems

# The other colours of figures. The HTML report replaces them by those of its theme, so that figures
# follow light and dark.
INK = "#1f2933"
MUTED = "#64717e"
GRID = "#dfe4ea"
PAPER = "#ffffff"

SPARE = ("#7a7f2a", "#8c6d5a", "#b5477f", "#3f8f8b", "#7d6bb3", "#a8662e")


def colour_of(system: str) -> str:
    """The colour of a system, as #rrggbb."""
    known = load_systems().get(system)
    if known and known.colour:
        return known.colour
    return SPARE[crc32(system.encode()) % len(SPARE)]
