# The two figures of each suite, and those of the published tables.

from reperf.layout import FIGURE_KINDS, FIGURES, PUBLISHED_FILES, SUITE_SUMMARY
from reperf.systems import load_systems, load_workloads

PUBLISHED_FACTS = seen_from_here(PUBLISHED_FILES)


def figure_of_suite(kind):
    """The figure as PNG, with its place in Snakemake's own report."""
    return report(
        f"{FIGURES}-{kind}.png",
        caption=f"../captions/{kind}.rst",
        category="Figures",
        subcategory="{suite}",
        labels={"suite": "{suite}", "figure": kind},
    )


def stem_of_figures(wildcards):
    return FIGURES.format(suite=wildcards.suite)


def descriptions_of_suite(wildcards):
    """The files that say what the suite's workload and its systems are."""
    systems, suite = load_systems(), REPORT.suite(wildcards.suite)
    described = {
        systems[entry.system].folder / "system.yaml" for entry in suite.entries
    }
    return seen_from_here([load_workloads()[suite.workload].file, *sorted(described)])


def window_of_suite(wildcards):
    return REPORT.suite(wildcards.suite).window.model_dump()


DRAW_FIGURES = {
    "stem": stem_of_figures,
    "window": window_of_suite,  # for the captions
}


rule draw_figures:
    input:
        built(f"{FIGURES}-{FIGURE_KINDS[0]}.svg", DRAW_FIGURES),
        summary=SUITE_SUMMARY,
        described=descriptions_of_suite,  # titles and colours
        code=code_of("draw_figures"),
    output:
        svg=[f"{FIGURES}-{kind}.svg" for kind in FIGURE_KINDS],
        png=[figure_of_suite(kind) for kind in FIGURE_KINDS],
    log:
        "logs/draw_figures/{suite}.log",
    params:
        **DRAW_FIGURES,
    message:
        "draw the figures of {wildcards.suite}"
    script:
        "../scripts/draw_figures.py"


rule draw_published_figures:
    input:
        built("figures/published", {}),
        facts=PUBLISHED_FACTS,
        code=code_of("draw_published_figures"),
    output:
        report(
            directory("figures/published"),
            patterns=["{figure}.png"],
            caption="../captions/published.rst",
            category="Published reports",
            labels={"figure": "{figure}"},
        ),
    log:
        "logs/draw_published_figures.log",
    message:
        "draw the figures of the published reports"
    script:
        "../scripts/draw_published_figures.py"
