"""Draw how long epochs of a suite take, and with how much memory, beside what is published."""

from reperf.building.code import seen_from_here
from reperf.building.made import making
from reperf.drawing.figures import draw_suites_epochs
from reperf.layout import EPOCHS, FIGURES, PUBLISHED_FILES, SUITE_SUMMARY, figures_of
from reperf.plans.suite_plan import SuitePlan


def run(suite: str) -> None:
    summary = SUITE_SUMMARY.format(suite=suite)
    inputs = [summary, *SuitePlan.of(suite).descriptions(), *seen_from_here(PUBLISHED_FILES)]
    with making("draw_epochs", figures_of(suite, [EPOCHS]), inputs):
        draw_suites_epochs(summary, FIGURES.format(suite=suite))
