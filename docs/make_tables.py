"""Write docs/configuration.md from the models, and docs/log-formats.md's tables from the formats.

python docs/make_tables.py
"""

import ast
import inspect
import json
import pkgutil
import re
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel
from reperf.config import Cluster, Data, Engine, Entry, LogSource, Parallel, Report, Suite, Window
from reperf.config.parallelism import Servers
from reperf.config.site import Hardware, SiteEnvironment
from reperf.config.suite import Measured
from reperf.files import write_whole
from reperf.logs import formats as package
from reperf.logs.format import Format, Prints
from reperf.logs.formats import formats
from reperf.validation import SchemaOfFile

DOCS = Path(__file__).parent
LINES = ("format", "a line that identifies it")
METHODS = ("format", "counts from", "time from", "published method")
"""The heads of the two tables of docs/log-formats.md."""
HEAD = """\
# Configuration

<!-- Made from workflow/reperf/config/: python docs/make_tables.py -->

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
    schema = Report.model_json_schema(schema_generator=SchemaOfFile)
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


def with_tables(page: str) -> str:
    """A page on log formats with both tables as they should be."""
    for head, row in ((LINES, _lines), (METHODS, _methods)):
        top = _row(head)
        rows = [row(log_format) for log_format in formats().values()]
        table = "\n".join([top, "|" + "---|" * len(head), *map(_row, rows), ""])
        page = re.sub(
            rf"^{re.escape(top)}\n(?:\|.*\n)*", table.replace("\\", r"\\"), page, flags=re.M
        )
    return page


@cache
def docstrings() -> dict[str, str]:
    """The docstring of each format, by its name: the text after its definition, or its module's."""
    found = {}
    for file in pkgutil.iter_modules(package.__path__):
        module = import_module(f"{package.__name__}.{file.name}")
        tree = ast.parse(inspect.getsource(module))
        for node, after in pairwise([*tree.body, None]):
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            value = vars(module).get(node.targets[0].id)
            if isinstance(value, Format):
                text = isinstance(after, ast.Expr) and ast.literal_eval(after.value)
                found[value.name] = text or module.__doc__ or ""
    return found


def _lines(log_format: Format) -> tuple[str, ...]:
    shown = re.findall(r"^ {4} *(.+)", docstrings()[log_format.name], re.M)
    # A bar ends a cell of a table even within code.
    lines = (re.sub(r"\|", r"\\|", line.rstrip().expandtabs(1)) for line in shown)
    return f"`{log_format.name}`", "<br>".join(f"`{line}`" for line in lines)


def _methods(log_format: Format) -> tuple[str, ...]:
    published = (log_format.published.__doc__ or "") if log_format.published else "none"
    own = log_format.system == "mlperf" and log_format.step_is[0] == "global_batch"
    counts = "the log's own counts" if own else str(log_format.counts_from)
    return f"`{log_format.name}`", counts, _times(log_format), published.splitlines()[0]


def _times(log_format: Format) -> str:
    if log_format.clock:
        return log_format.clock.title
    if "duration" not in log_format.line.groupindex:
        return "nothing: refused"
    if Prints.EVENLY in log_format.prints:
        return "the mean time of an iteration since the previous line"
    return "printed durations"


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    write_whole(DOCS / "configuration.md", configuration_page())
    formats_page = DOCS / "log-formats.md"
    write_whole(formats_page, with_tables(formats_page.read_text(encoding="utf-8")))
