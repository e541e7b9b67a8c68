"""`reperf config`: what a configuration may contain, and what reperf writes."""

import argparse
import json
import os
from pathlib import Path
from typing import Any

from reperf import tables
from reperf.config import Report
from reperf.errors import ReperfError
from reperf.files import whole_file
from reperf.layout import ROOT
from reperf.plans.run_plan import RunPlan
from reperf.records.run_record import RunRecord
from reperf.text import count, printable
from reperf.validation import SchemaOfFile

SCHEMAS = ("config", "run", "plan", "measurements", "summary")
"""The JSON Schemas in workflow/schemas/: of a configuration, run.json, plan.json, and a row of
either table."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    actions = parser.add_subparsers(required=True, dest="form", metavar="ACTION")
    check = actions.add_parser("check", help="check a report and say what of it cannot run here")
    check.add_argument("files", type=Path, nargs="+", metavar="FILE", help="as for --configfile")
    check.set_defaults(run=run_check)
    begin = actions.add_parser("init", help="write a report with comments, to be edited")
    begin.add_argument("file", type=Path, metavar="FILE", help="such as mine.yaml; a new file")
    begin.set_defaults(run=run_init)
    schema = actions.add_parser("schema", help="print the JSON Schema of a file")
    schema.add_argument("of", choices=SCHEMAS, nargs="?", default="config", help="which file's")
    schema.set_defaults(run=run_schema)


def run_check(options: argparse.Namespace) -> int:
    """Print what a report asks for."""
    # It looks at this machine, and what is installed to measure logs alone cannot.
    from reperf.configfiles import read_report  # noqa: PLC0415

    report, name = read_report(options.files)
    runs = sum(len(report.runs(suite)) for suite in report.suites)
    print(printable(f"{name}: {count(len(report.suites), 'suite')}, {count(runs, 'run')}"))
    if left_out := report.left_out():
        print(printable(f"cannot run here: {left_out}"))
    return 0


def run_init(options: argparse.Namespace) -> int:
    """Write the report for one node, whose comments say what to edit."""
    if options.file.exists():
        raise ReperfError(f"{options.file}: exists already; allowed: a new file")
    schema = os.path.relpath(ROOT / "workflow/schemas/config.schema.json", options.file.parent)
    _, *lines = (ROOT / "reports/one-node.yaml").read_text(encoding="utf-8").splitlines(True)
    with whole_file(options.file) as stream:
        stream.writelines([f"# yaml-language-server: $schema={schema}\n", *lines])
    print(printable(f"{options.file}: edit it; snakemake --configfile {options.file} makes it"))
    return 0


def run_schema(options: argparse.Namespace) -> int:
    """Print the schema."""
    print(json.dumps(schema_of(options.of), indent=2))
    return 0


def schema_of(name: str) -> dict[str, Any]:
    """One of the `SCHEMAS`, by its name."""
    match name:
        case "config":
            schema = Report.model_json_schema(schema_generator=SchemaOfFile)
            del schema["required"]  # a site's file has no suites
        case "run":
            schema = RunRecord.model_json_schema(schema_generator=SchemaOfFile)
            schema["properties"]["seal"] = {
                "type": "string",
                "description": "SHA-256 of all else, as JSON with sorted keys and without spaces",
            }
        case "plan":
            schema = RunPlan.model_json_schema(schema_generator=SchemaOfFile)
        case _:
            columns = tables.MEASUREMENTS if name == "measurements" else tables.SUMMARY
            schema = tables.schema_of_row(name, columns)
    return schema
