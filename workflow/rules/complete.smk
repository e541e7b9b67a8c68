# The last word: everything is built, and every cell is measured or its absence is explained.

from reperf.layout import ALL_MEASUREMENTS, ALL_SUMMARY
from reperf.text import printable

if CALL.is_main and (left_out := REPORT.left_out()):
    print(printable(f"reperf: left out of this report: {left_out}"), file=sys.stderr)


COMPLETE = {"profile": PROFILE}


rule complete:
    input:
        built("results/complete.txt", COMPLETE),
        summary=ALL_SUMMARY,
        measurements=ALL_MEASUREMENTS,
        reports=["results/report.html", "results/report.md"],
        archives=expand("archive/{suite}.zip", suite=SUITES),
        code=code_of("complete"),
    output:
        "results/complete.txt",
    log:
        "logs/complete.log",
    retries: 0  # another try would find the same
    params:
        **COMPLETE,
    message:
        "look for cells that were not measured"
    script:
        "../scripts/complete.py"
