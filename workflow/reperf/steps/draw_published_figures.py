"""Draw the figures of the published tables."""

from reperf.building.code import seen_from_here
from reperf.building.made import making
from reperf.drawing.figures import draw_published
from reperf.layout import PUBLISHED_FIGURES, PUBLISHED_FILES


def run() -> None:
    facts = seen_from_here(PUBLISHED_FILES)
    with making("draw_published_figures", [PUBLISHED_FIGURES], facts):
        draw_published(PUBLISHED_FIGURES)
