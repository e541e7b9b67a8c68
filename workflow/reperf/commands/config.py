"""`reperf config`: what a configuration may contain, and what reperf writes."""

import argparse
import json
from typing import Any

SCHEMAS = ("config", "run", "plan", "measurements", "summary")
"""The JSON Schemas in workflow/schemas/: of a configuration, run.json, plan.json, and a row of
either table."""


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command to the parser of `reperf`."""
    said = "print what a configuration may contain, or the JSON Schema of a file that reperf writes"
    parser = commands.add_parser("config", help=said, description=f"{said.capitalize()}.")
    parser.add_argument(
        "form", choices=("docs", "schema"), help="docs/configuration.md, or a JSON Schema"
    )
    parser.add_argument(
        "of", choices=SCHEMAS, nargs="?", default="config", help="what the schema is of"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the page or the schema."""
    from reperf.config.page import configuration_page  # noqa: PLC0415

    if options.form == "docs":
        print(configuration_page(), end="")
    else:
        print(json.dumps(schema_of(options.of), indent=2))
    return 0


def schema_of(name: str) -> dict[str, Any]:
    """One of the `SCHEMAS`, by its name."""
    from pydantic.json_schema import GenerateJsonSchema  # noqa: PLC0415

    from reperf import tables  # noqa: PLC0415
    from reperf.config import Report  # noqa: PLC0415
    from reperf.plans.run_plan import RunPlan  # noqa: PLC0415
    from reperf.records.run_record import RunRecord  # noqa: PLC0415

    class WithoutTitles(GenerateJsonSchema):
        """A field's title would be its name again, in other letters."""

        def field_title_should_be_set(self, schema: object) -> bool:
            return False

    match name:
        case "config":
            schema = Report.model_json_schema(schema_generator=WithoutTitles)
            del schema["required"]  # a site's file has no suites
        case "run":
            schema = RunRecord.model_json_schema(schema_generator=WithoutTitles)
            schema["properties"]["seal"] = {
                "type": "string",
                "description": "SHA-256 of all else, as JSON with sorted keys and without spaces",
            }
        case "plan":
            schema = RunPlan.model_json_schema(schema_generator=WithoutTitles)
        case _:
            columns = tables.MEASUREMENTS if name == "measurements" else tables.SUMMARY
            schema = tables.schema_of_row(name, columns)
    return schema
