# The two figures of each suite, and those of the published tables.

from reperf.systems import load_systems, load_workloads

KINDS = ("throughput", "speedup")
SUFFIXES = ("svg", "png")
PUBLISHED_FACTS = expand(
    "data/published/{name}", name=["published.csv", "repeats.csv", "tables.yaml"]
)


def figure_of_suite(kind):
    """The figure as PNG, with its place in Snakemake's own report."""
    return report(
        f"figures/{{suite}}-{kind}.png",
        caption=f"../captions/{kind}.rst",
        category="Figures",
        subcategory="{suite}",
        labels={"suite": "{suite}", "figure": kind},
    )


def stem_of_figures(wildcards):
    return f"figures/{wildcards.suite}"


def descriptions_of_suite(wildcards):
    """The files that say what the suite's workload and its systems are."""
    systems, suite = load_systems(), REPORT.suite(wildcards.suite)
    described = {systems[entry.system].folder / "system.yaml" for entry in suite.entries}
    return seen_from_here([load_workloads()[suite.workload].file, *sorted(described)])


def window_of_suite(wildcards):
    return REPORT.suite(wildcards.suite).window.model_dump()


DRAW_FIGURES = {
    "stem": stem_of_figures,
    "window": window_of_suite,  # for the captions
}


rule draw_figures:
    input:
        built("figures/{suite}-throughput.svg", DRAW_FIGURES),
        summary="results/suites/{suite}/summary.csv",
        described=descriptions_of_suite,  # titles and colours
        code=code_of("draw_figures"),
    output:
        svg=expand("figures/{{suite}}-{kind}.svg", kind=KINDS),
        png=[figure_of_suite(kind) for kind in KINDS],
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
