"""`reperf config`: what a configuration may contain."""

import argparse
import json


def add(commands: argparse._SubParsersAction) -> None:
    """Add the command to the parser of `reperf`."""
    said = "print what a configuration may contain"
    parser = commands.add_parser("config", help=said, description=f"{said.capitalize()}.")
    parser.add_argument(
        "form", choices=("docs", "schema"), help="docs/configuration.md, or the JSON Schema"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the page or the schema."""
    from reperf.config import Report  # noqa: PLC0415
    from reperf.config.page import configuration_page  # noqa: PLC0415

    if options.form == "docs":
        print(configuration_page(), end="")
    else:
        schema = Report.model_json_schema()
        del schema["required"]  # a site's file has no suites
        print(json.dumps(schema, indent=2))
    return 0
