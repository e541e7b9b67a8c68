"""`snakemake --lint`, with each finding that is left in place explained."""

import re
import subprocess
import sys

EXPLAINED = {
    "Specify a conda environment or container for each rule": (
        "rules run in the one environment that `make` builds; trainers run in environments that a "
        "rule builds, so that what was installed is itself a result with a lock and a record"
    ),
    "Mixed rules and functions in same snakefile": (
        "a function stands beside the one rule that asks it, where its reader is"
    ),
    "Shell command directly uses variable PYTHON from outside of the rule": (
        "as a param, the path of Python would be evaluated for each run"
    ),
    "Shell command directly uses variable workflow from outside of the rule": (
        "as a param, another number of retries would train runs again"
    ),
}


def main() -> int:
    """Print every finding that is not explained above; returns 1 if there is one."""
    answer = subprocess.run(
        ["snakemake", "--lint", "--configfile", "config.yaml"],
        check=False,
        capture_output=True,
        text=True,
    )
    said = answer.stdout + answer.stderr
    if "Lints for" not in said:
        print(said)
        return answer.returncode
    findings = re.findall(r"^ +\* (.+?)(?: in line \d+)?[.:]*$", said, re.MULTILINE)
    unexplained = [finding for finding in findings if finding not in EXPLAINED]
    print("\n".join(unexplained) or f"{len(findings)} findings, all explained")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
