"""`snakemake --lint`, with the one finding that does not fit here explained.

Snakemake wants a conda environment or a container for every rule. reperf's rules run in the one
environment that `make` builds, and trainers run in environments that a rule of the workflow
builds, so that what was installed is itself a result with a lock and a record.
"""

import json
import subprocess
import sys

EXPLAINED = "Specify a conda environment or container for each rule."


def main() -> int:
    """Print every finding that is not explained above; returns 1 if there is one."""
    command = ["snakemake", "--lint", "json", "--configfile", "local/report.yaml"]
    answer = subprocess.run(command, check=False, capture_output=True, text=True)
    found = json.loads(answer.stdout)
    findings = [
        (lint["title"], rule["for"])
        for part in ("rules", "snakefiles")
        for rule in found[part]
        for lint in rule["lints"]
        if lint["title"] != EXPLAINED
    ]
    for title, place in findings:
        print(f"{place}: {title}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
