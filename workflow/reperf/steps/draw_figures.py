"""Draw the figures of a suite."""

from reperf.building.made import making
from reperf.drawing.figures import draw_suite
from reperf.layout import FIGURES, SUITE_SUMMARY, figures_of
from reperf.plans.suite_plan import SuitePlan


def run(suite: str) -> None:
    summary = SUITE_SUMMARY.format(suite=suite)
    described = SuitePlan.of(suite).descriptions()  # titles and colours
    with making("draw_figures", figures_of(suite), [summary, *described]):
        draw_suite(summary, FIGURES.format(suite=suite))
