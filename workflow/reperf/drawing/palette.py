"""Which colour a system has: the same in every figure, whatever is drawn beside it.

A system's colour stands in its system.yaml. One that states none there, or that is known from a log
or a publication alone, gets the spare colour that its id's checksum points to. Neither looks at
other systems: adding one recolours none, and an archived figure rebuilds to the same bytes.

The stated colours were chosen by a search that kept every pair 12 CIEDE2000 apart for deuteranopes
and protanopes and their lightness 3 L* apart, between 38 and 75: they differ in grey, and stand out
from white and from near-black paper. tests/unit/test_figures.py holds them to it.
"""

from zlib import crc32

from reperf.systems import load_systems

# What figures are made of besides the systems' colours. The HTML report replaces these by its own
# theme, so that a figure follows light and dark.
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
