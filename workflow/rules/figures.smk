# The figures of each suite, and those of the published tables.

from reperf.layout import EPOCHS, FIGURE_KINDS, PUBLISHED_FILES

PUBLISHED_FACTS = seen_from_here(PUBLISHED_FILES)


def figure_of_suite(kind):
    """The figure as PNG, with its place in Snakemake's own report."""
    return report(
        f"figures/{{suite}}-{kind}.png",
        caption=f"../captions/{kind}.rst",
        category="Figures",
        subcategory="{suite}",
        labels={"suite": "{suite}", "figure": kind},
    )


# Suites on a single topology have no speedups.
for kinds, suites in PLANS.suites_by_figures.items():

    rule:
        name:
            "draw_figures" if kinds == FIGURE_KINDS else "draw_unscaled_figures"
        input:
            summary=f"{SUITE}/summary.csv",
            measurements=f"{SUITE}/measurements.csv",  # the dots of repeats
            described=descriptions_of_suite,  # titles and colours
            code=code_of("draw_figures"),
        output:
            svg=[f"figures/{{suite}}-{kind}.svg" for kind in kinds],
            png=[figure_of_suite(kind) for kind in kinds],
            checksums=f"{SUITE}/figures.sha256",
        log:
            "logs/draw_figures/{suite}.log",
        wildcard_constraints:
            suite="|".join(map(re.escape, suites)),
        localrule: True
        message:
            "draw the figures of {wildcards.suite}"
        script:
            "../scripts/draw_figures.py"


# Of suites whose devices share a model, for the report alone: published numbers stand in it.
rule draw_epochs:
    input:
        summary=f"{SUITE}/summary.csv",
        described=descriptions_of_suite,
        facts=PUBLISHED_FACTS,
        code=code_of("draw_epochs"),
    output:
        svg=f"figures/{{suite}}-{EPOCHS}.svg",
        png=figure_of_suite(EPOCHS),
        checksums=f"{SUITE}/{EPOCHS}.sha256",
    log:
        "logs/draw_epochs/{suite}.log",
    message:
        "draw the epochs of {wildcards.suite}"
    script:
        "../scripts/draw_epochs.py"


rule draw_published_figures:
    input:
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
    priority: -1  # no run should wait for them
    message:
        "draw the figures of the published reports"
    script:
        "../scripts/draw_published_figures.py"
