"""Turns the first error that pydantic finds in a file into one line for people who write YAML.

The words come from `ALLOWED`; ranges, keys and purposes come from the JSON Schema of the model.
"""

import ast
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import ErrorDetails

from reperf.errors import ReperfError
from reperf.suggestions import CLOSE, did_you_mean, nearest, of_topology
from reperf.values import SAID_OF, TOPOLOGY

Checked = TypeVar("Checked", bound=BaseModel)
Node = dict[str, Any]  # a part of a JSON Schema
Place = tuple[int | str, ...]

LONGEST = 120  # characters shown of a value, or of its place
SHOWN_KEYS = 24
"""Allowed keys that are listed: all that a configuration has at any place, not all of a record."""
LIKE_MISSING, LIKE_ALLOWED = 0.4, 0.9
"""How alike an unknown key must be to one that is missing beside it, of 1; and, if it is allowed
elsewhere, to one that is allowed beside it."""

ALLOWED = {
    "bool_parsing": "true or false{what}",
    "bool_type": "true or false{what}",
    "dict_type": "a mapping of keys to values{what}",
    "finite_number": "{number}{what}",
    "model_type": "a mapping of keys to values, of {keys}",
    "path_type": "a path{what}",
    "string_pattern_mismatch": "text that matches {pattern}",
    "string_too_long": "up to {max_length} characters",
    "string_type": "text{what}",
    "too_short": "at least one item",
    "tuple_type": "a list{items}",
}  # a type of pydantic's errors -> what is allowed, for people who write YAML and no Python
_PAGES = {"workload": "docs/add-a-workload.md", "system": "docs/add-a-system.md"}
"""A key whose values are a list that people can make longer -> the page that says how."""
_OF_NUMBERS = re.compile("int_|float_|greater_|less_")
"""How the other types begin that say what `finite_number` does."""


# Each step of the workflow imports models: pydantic builds a validator where one is first needed.
class Described(BaseModel, defer_build=True):
    """A part of a file; the text below a field describes it."""


class Model(Described, extra="forbid", frozen=True):
    """A part of a file: unknown keys are refused, values cannot be changed."""


class SchemaOfFile(GenerateJsonSchema):
    """The JSON Schema of a file, without titles, which would be the fields' names once more."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False

    def model_schema(self, schema: Any) -> JsonSchemaValue:  # noqa: ANN401 - of pydantic's core
        """As pydantic has it, with the texts below fields, which it would read in every process."""
        model, of_model = schema["cls"], super().model_schema(schema)
        texts: dict[str, str] = {}
        for one in reversed(model.__mro__[: model.__mro__.index(BaseModel)]):
            texts |= _texts_below_fields(inspect.getfile(one)).get(one.__name__, {})
        for name, field in model.model_fields.items():
            if name in texts:
                of_model["properties"][field.alias or name]["description"] = texts[name]
        return of_model


@cache
def _texts_below_fields(file: str) -> dict[str, dict[str, str]]:
    """The text below each field of the classes of a module, on one line: by class and field."""
    body = ast.parse(Path(file).read_text(encoding="utf-8")).body
    return {
        part.name: {
            field.target.id: " ".join(below.value.value.split())
            for field, below in pairwise(part.body)
            if isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        }
        for part in body
        if isinstance(part, ast.ClassDef)
    }


def checked(model: type[Checked], content: Any, name: Path | str) -> Checked:  # noqa: ANN401
    """A file's content, checked against the whole file's model; a ReperfError names a fault."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise ReperfError(f"{name}: {first_fault(error, model, content)}") from None


def first_fault(error: ValidationError, model: type[BaseModel], content: Any) -> str:  # noqa: ANN401
    """The first fault of a check of parsed YAML or JSON: `place: got value; allowed: ...`."""
    errors, schema = (
        error.errors(include_url=False),
        _Schema(model.model_json_schema(schema_generator=SchemaOfFile)),
    )
    in_same_mapping = [each for each in errors if each["loc"][:-1] == errors[0]["loc"][:-1]]
    missing = [str(each["loc"][-1]) for each in in_same_mapping if each["type"] == "missing"]
    unknown = [each for each in in_same_mapping if each["type"] == "extra_forbidden"]
    # An unknown key says more than the key that is missing because of it.
    fault = unknown[0] if errors[0]["type"] == "missing" and unknown else errors[0]
    place, value = cut(_place(content, fault["loc"])), fault["input"]
    if fault["type"] == "missing":
        message = f"is missing{schema.words(fault['loc'])['what']}"
    elif fault["type"] == "extra_forbidden":
        message = _of_unknown_key(fault["loc"], schema, missing)
    else:
        message = _message(fault, schema)
        if not isinstance(value, dict | list | tuple):
            message = f"got {shown(value)}; {message}"
        elif fault["type"] != "too_short" and message.startswith("allowed:"):
            # What is in it is not shown: its place says enough.
            kind = "mapping" if isinstance(value, dict) else "list"
            message = f"got {'a' if value else 'an empty'} {kind}; {message}"
    return f"{place}: {message}" if place else message


def _place(content: Any, location: Place) -> str:  # noqa: ANN401
    """The key at `location`, list items by their names: suites.resnet50-fp32.systems.pytorch."""
    names = []
    for step in location:
        if isinstance(step, int) and isinstance(content, Mapping):
            continue  # a mapping in place of a list is its only item
        if step == "[key]":
            continue  # pydantic's, after the name of a key that is at fault itself
        try:
            # And so is text.
            content = content if isinstance(content, str) else content[step]
        except (LookupError, TypeError):  # a key that is missing
            content = None
        names.append(_name_of(content, step) if isinstance(step, int) else step)
    return ".".join(map(str, names))


def _name_of(item: Any, position: int) -> str:  # noqa: ANN401
    if isinstance(item, Mapping):
        item = item.get("name", item.get("system"))
    return item if isinstance(item, str) and item.strip() else str(position + 1)


def _message(fault: ErrorDetails, schema: "_Schema") -> str:
    kind, value, context = fault["type"], fault["input"], fault.get("ctx", {})
    kind = "finite_number" if _OF_NUMBERS.match(kind) else kind
    if kind == "string_type" and isinstance(value, int | float):
        return "allowed: text, in quotes where YAML reads a number, true or false"
    if kind == "string_pattern_mismatch" and context["pattern"] in SAID_OF:
        meant = of_topology(value) if context["pattern"] == TOPOLOGY else ""
        return f"allowed: {SAID_OF[context['pattern']]}{meant}"
    if kind in ALLOWED:
        allowed = f"allowed: {ALLOWED[kind].format(**schema.words(fault['loc']), **context)}"
        if kind == "tuple_type" and isinstance(value, str) and "mappings" not in allowed:
            allowed += f"; did you mean [{cut(value)}]?"
        return allowed
    message = fault["msg"].removeprefix("Value error, ").replace("Input should be", "allowed:")
    if kind == "literal_error":
        page = _PAGES.get(str(fault["loc"][-1]))
        meant = did_you_mean(value, re.findall(r"'([^']*)'", context["expected"]))
        message += meant or (f"; a new one: {page}" if page else "")
    return message


def _of_unknown_key(location: Place, schema: "_Schema", missing: Sequence[str]) -> str:
    """What to say of a key that is not allowed where it stands; some are missing beside it."""
    *around, key = location
    allowed = schema.keys(schema.at(tuple(around)))
    lacks = f"missing: {', '.join(missing)}; " if missing else ""
    message = f"unknown key; {lacks}allowed: {_listed(allowed)}"
    here = tuple(step for step in around if isinstance(step, str))
    elsewhere = [place for place in schema.places_of(str(key)) if place != here]
    close = LIKE_MISSING if missing else LIKE_ALLOWED if elsewhere else CLOSE
    if meant := nearest(key, missing or allowed, close=close):
        return f"{message}; did you mean {meant}?"
    if not elsewhere:
        return f"{message}; did you mean {missing[0]}?" if len(missing) == 1 else message
    below = [place for place in elsewhere if place[: len(here)] == here] or elsewhere
    shortest = [".".join(place) for place in below if len(place) == min(map(len, below))]
    names = dict.fromkeys(
        f"under {name}" if name else "at the top of the file" for name in shortest
    )
    return f"{message}; {key} stands {' or '.join(names)}"


class _Schema:
    """The JSON Schema of a file."""

    def __init__(self, whole: Node) -> None:
        self._whole = whole

    def forms(self, node: Node) -> Iterator[Node]:
        """What a part of the schema refers to, or each of what it may be."""
        inner = [form for key in ("anyOf", "oneOf", "allOf") for form in node.get(key, ())]
        if "$ref" in node:
            inner.append(self._whole["$defs"][node["$ref"].rpartition("/")[2]])
        if not inner:
            yield node
        for form in inner:
            yield from self.forms(form)

    def inside(self, node: Node) -> Iterator[tuple[str, Node]]:
        """What stands in a mapping or a list: each key, or "" for any other, and its schema."""
        for form in self.forms(node):
            yield from form.get("properties", {}).items()
            for name in ("items", "additionalProperties"):
                if isinstance(form.get(name), dict):
                    yield "", form[name]

    def at(self, place: Place) -> Node:
        """The schema of a place; of the list or the mapping around it, if it knows no more."""
        node = self._whole
        for step in place:
            inner = dict(self.inside(node))
            node = inner.get(str(step), inner.get("", node))
        return node

    def keys(self, node: Node) -> list[str]:
        """The keys that are allowed in a mapping."""
        return sorted({key for key, _ in self.inside(node) if key})

    def places_of(
        self, key: str, node: Node | None = None, place: tuple[str, ...] = ()
    ) -> Iterator[tuple[str, ...]]:
        """The keys under which a key is allowed: () for the top of the file."""
        for name, inner in self.inside(self._whole if node is None else node):
            if name == key:
                yield place
            yield from self.places_of(key, inner, (*place, name) if name else place)

    def words(self, place: Place) -> dict[str, str]:
        """What a place may hold, for the gaps in `ALLOWED`."""
        node = self.at(place)
        forms, items = [*self.forms(node)], dict(self.inside(node)).get("", {})
        # The first words of a description say what is counted.
        what = node.get("description", "").partition(";")[0] if place else ""
        is_float = any(form.get("type") == "number" for form in forms)
        shape = "g" if is_float else ","
        number = "a number" if is_float else "a whole number"
        for form in forms:
            if "minimum" in form and "maximum" in form:
                number += f", {form['minimum']:{shape}} to {form['maximum']:{shape}}"
        of_text = any(form.get("type") == "string" for form in self.forms(items))
        keys = "" if of_text else ", ".join(self.keys(items))
        return {
            "what": f": {what}" if what and not what.startswith("left out") else "",
            "number": number,
            "keys": _listed(self.keys(node)),
            "items": f" of mappings with the keys {keys}" if keys else "",
        }


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(keys[:SHOWN_KEYS]) + (", ..." if len(keys) > SHOWN_KEYS else "")


def cut(text: str) -> str:
    """A text as messages show it, cut short."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def shown(value: Any) -> str:  # noqa: ANN401
    """A value of a file as messages show it, cut short."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true, as YAML reads on and yes" if value else "false, as YAML reads off and no"
    try:
        return cut(repr(value))
    except ValueError:  # Python does not write out more than 4,300 digits
        return "a number of thousands of digits"
