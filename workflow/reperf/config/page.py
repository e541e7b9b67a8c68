"""docs/configuration.md, made from the models that check a configuration."""

import json
from typing import Any

import yaml
from pydantic import BaseModel

from reperf.config import Cluster, Data, Engine, Entry, LogSource, Parallel, Report, Suite, Window
from reperf.config.parallelism import Servers
from reperf.config.site import Hardware, SiteEnvironment
from reperf.config.suite import Measured

HEAD = """\
# Configuration

<!-- Made from workflow/reperf/config/: reperf config docs > docs/configuration.md -->

A report says what is measured, a site's file where; both are YAML, with the keys below.
`config.yaml` is the report that plain `snakemake` makes, `reports/` has more, and
[`site.yaml`](../site.yaml) is for your `cluster`, `container` and `data`:

```sh
snakemake --configfile reports/one-node.yaml                          # instead of config.yaml
snakemake --profile slurm --configfile reports/modern.yaml site.yaml  # there
```

Snakemake merges the files: a later file overrides an earlier one key by key, and replaces a list as
a whole. Files without `suites` add to `config.yaml`. `reperf estimate`, `reperf doctor` and
`reperf runs` take the same `--configfile`. Put targets before it, or after `--`.

`reperf config init FILE` writes a report with comments, to be edited; `reperf config check FILE`
checks one and says what of it cannot run on this machine.

Wrong keys and values are refused in one line before anything starts. The first line of each file
names `workflow/schemas/config.schema.json`, by which editors complete keys and mark mistakes;
`reperf config schema` prints it.
"""

SECTIONS: dict[str, type[BaseModel]] = {
    "window": Window,
    "data": Data,
    "cluster": Cluster,
    "environment": SiteEnvironment,
    "container": Engine,
    "suites": Suite,
    "systems": Entry,
    "parallel": Parallel,
    "servers": Servers,
    "from": LogSource,
    "hardware": Hardware,
}
"""The keys that hold keys, in the order of the page."""

OF_REPORT = "the report's"
OF_NAMES = {"integer": "whole numbers", "object": "names with text each", "string": "text"}
"""The values of a mapping in words, by the type in its schema."""

_LINKS = {f"#/$defs/{model.__name__}": key for key, model in SECTIONS.items()}


def configuration_page() -> str:
    """The page: one table for the whole file, and one for each key that holds further keys."""
    schema = Report.model_json_schema()
    sections = [HEAD, _section("The file", schema)]
    for key, model in SECTIONS.items():
        described = schema["$defs"][model.__name__]
        if model is Suite:
            for shared in Measured.model_fields:
                described["properties"][shared]["default"] = OF_REPORT
        sections.append(_section(f"`{key}`", described))
    return "\n".join(sections)


def _section(title: str, model: dict[str, Any]) -> str:
    # What suites and report share comes after what each has alone.
    properties = sorted(
        model["properties"].items(), key=lambda item: item[0] in Measured.model_fields
    )
    rows = [
        f"| `{key}` | {_allowed(field)} | {_left_out(key, field, model)} |"
        f" {field.get('description', '')} |"
        for key, field in properties
    ]
    head = ["| key | allowed | default | meaning |", "|---|---|---|---|"]
    in_order = [key for key, _ in properties]
    examples = [
        {key: example[key] for key in sorted(example, key=in_order.index)}
        for example in model.get("examples", ())
    ]
    block = ["", "```yaml", _in_yaml(title.strip("`"), examples), "```"] if examples else []
    return "\n".join([f"## {title}", "", model["description"], *block, "", *head, *rows, ""])


def _in_yaml(key: str, examples: list[dict[str, Any]]) -> str:
    """Examples as in a file: below their key, in a list if several are allowed."""
    contents: list[Any] = examples
    if key in ("data", "suites", "systems", "from"):
        contents = [{key: examples}]
    elif key in SECTIONS:
        contents = [{key: example} for example in examples]
    texts = (
        yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=100)
        for content in contents
    )
    return "# or\n".join(texts).rstrip()


def _allowed(field: dict[str, Any]) -> str:
    """The values of a key, in words."""
    match field:
        case {"$ref": reference}:
            words = f"keys, see [below](#{_LINKS[reference]})"
        case {"anyOf": choices}:
            words = " or ".join(_allowed(form) for form in choices if form != {"type": "null"})
        case {"const": value}:
            words = f"`{value}`"
        case {"enum": values}:
            words = ", ".join(f"`{value}`" for value in values)
        case {"type": "array", "items": items}:
            words = f"list: {_allowed(items)}"
        case {"type": "integer", "minimum": least, "maximum": most}:
            words = f"whole number, {least:,} to {most:,}"
        case {"type": "number", "minimum": least, "maximum": most}:
            words = f"number, {least:g} to {most:g}"
        case {"type": "boolean"}:
            words = "`true`, `false`"
        case {"type": "object"}:
            values = field.get("additionalProperties", {})
            kind = values.get("type", "string")
            of_each = f"{_allowed(values)} each" if "anyOf" in values else OF_NAMES[kind]
            words = f"names with {of_each}"
        case {"pattern": pattern}:
            words = f"text that matches `{pattern}`"
        case {"format": "path"}:
            words = "path"
        case {"type": "string"}:
            words = "text"
    return words


def _left_out(key: str, field: dict[str, Any], model: dict[str, Any]) -> str:
    """The value of a key that is not given."""
    if key in model.get("required", ()):
        return "required"
    default = field.get("default")
    if default == OF_REPORT:
        return default
    of_keys = isinstance(default, list) and any(isinstance(item, dict) for item in default)
    return "" if default is None or "$ref" in field or of_keys else f"`{json.dumps(default)}`"
