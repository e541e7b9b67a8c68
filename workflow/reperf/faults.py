"""What is wrong with a file that people write, in one line and in their words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from reperf.errors import ReperfError
from reperf.nearest import CLOSE, did_you_mean, nearest

Checked = TypeVar("Checked", bound=BaseModel)

LONGEST = 120
"""Characters shown of a value, or of its place."""
SHOWN_KEYS = 24
"""Allowed keys that are listed: all that a configuration has at any place, not all of a record."""

LIKE_A_MISSING_KEY = 0.4
"""How alike an unknown key must be to one that is missing beside it, of 1."""
LIKE_AN_ALLOWED_KEY = 0.9
"""The same for one that is allowed beside it, if the unknown key is allowed elsewhere."""

# pydantic speaks Python, but users write YAML.
PLAIN_WORDS = {
    "dict_type": "a mapping of keys to values",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number",
    "int_type": "a whole number",
    "model_type": "a mapping of keys to values",
    "path_type": "a path",
    "string_type": "text",
    "too_short": "at least one item",
    "tuple_type": "a list",
}


class Model(BaseModel):
    """A part of a file: unknown keys are refused, values cannot be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def checked(
    model: type[Checked],
    content: Any,  # noqa: ANN401
    name: Path | str,
    context: Mapping[str, Any] | None = None,
) -> Checked:
    """A file's content, checked against the model that says what it may hold.

    Args:
        content: the parsed YAML or JSON.
        name: the file's, for the message.
        context: what validators of the model are told.

    Raises:
        ReperfError: the content is not valid; the message names its first fault.
    """
    try:
        return model.model_validate(content, context=context)
    except ValidationError as error:
        raise ReperfError(f"{name}: {first_fault(error, model, content)}") from None


def first_fault(error: ValidationError, model: type[BaseModel], content: Any) -> str:  # noqa: ANN401
    """The first fault, as `place: got value; allowed: ...`.

    Args:
        error: what the check of `content` raised.
        model: what `content` was checked against.
        content: the parsed YAML or JSON.
    """
    faults = error.errors(include_url=False)
    fault, missing = _instead_of_missing(faults)
    place = _place(content, fault["loc"])
    return ": ".join(filter(None, [_cut(place), _complaint(fault, model, missing)]))


def _instead_of_missing(faults: Sequence[ErrorDetails]) -> tuple[ErrorDetails, list[str]]:
    """The first fault; if it is a missing key, the unknown one beside it, which says more.

    Returns:
        The fault, and the keys that are missing beside it.
    """
    first, around = faults[0], faults[0]["loc"][:-1]
    beside = [fault for fault in faults if fault["loc"][:-1] == around]
    missing = [str(fault["loc"][-1]) for fault in beside if fault["type"] == "missing"]
    unknown = (fault for fault in beside if fault["type"] == "extra_forbidden")
    if first["type"] == "missing" and (found := next(unknown, None)):
        return found, missing
    return first, missing if first["type"] == "extra_forbidden" else []


def _place(content: Any, location: tuple[int | str, ...]) -> str:  # noqa: ANN401
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
    return item if isinstance(item, str) else str(position + 1)


def _complaint(fault: ErrorDetails, model: type[BaseModel], missing: list[str]) -> str:
    """What is wrong with a value, and what is allowed instead.

    Args:
        fault: what pydantic says.
        model: of the whole file.
        missing: the keys that are missing beside an unknown one.
    """
    kind, value = fault["type"], fault["input"]
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return _of_unknown_key(fault["loc"], model, missing)
    message = fault["msg"].removeprefix("Value error, ").replace("Input should be", "allowed:")
    if kind in PLAIN_WORDS:
        message = f"allowed: {PLAIN_WORDS[kind]}"
    if kind == "tuple_type" and isinstance(value, str):
        message += f"; did you mean [{_cut(value)}]?"
    if kind == "model_type" and fault["loc"]:
        message += f", of {', '.join(_keys_at(model, fault['loc']))}"
    if kind in ("string_too_long", "too_long"):
        what = "characters" if kind == "string_too_long" else "items"
        message = f"allowed: up to {fault['ctx']['max_length']} {what}"
    if kind == "literal_error":
        message += did_you_mean(value, re.findall(r"'([^']*)'", fault["ctx"]["expected"]))
    # A list or a mapping is not shown: its place says enough.
    return message if isinstance(value, dict | list) else f"got {_cut(_written(value))}; {message}"


def _of_unknown_key(
    location: tuple[int | str, ...], model: type[BaseModel], missing: list[str]
) -> str:
    """What to say of a key that is not allowed where it stands."""
    *around, key = location
    allowed = _keys_at(model, tuple(around))
    lacks = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    listed = ", ".join(allowed[:SHOWN_KEYS])
    if len(allowed) > SHOWN_KEYS:
        listed += f" and {len(allowed) - SHOWN_KEYS} more"
    said = f"unknown key; {f'{lacks}; ' if missing else ''}allowed: {listed}"
    here = [step for step in around if isinstance(step, str)]
    elsewhere = [place for place in _places_of(str(key), model) if [*place] != here]
    meant = nearest(key, missing, close=LIKE_A_MISSING_KEY)
    if len(missing) == 1 and not elsewhere:  # one for the other
        meant = missing[0]
    if meant := meant or nearest(key, allowed, close=LIKE_AN_ALLOWED_KEY if elsewhere else CLOSE):
        return f"{said}; did you mean {meant}?"
    if elsewhere:
        # The fewest steps up and down from where it stands.
        fewest = min(_steps(here, place) for place in elsewhere)
        names = (_named(place) for place in elsewhere if _steps(here, place) == fewest)
        return f"{said}; {key} stands {' or '.join(dict.fromkeys(names))}"
    return said


def _places_of(
    key: str, model: type[BaseModel], place: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """The keys under which a key is allowed: () for the top of the file."""
    fields = _fields(model)
    if key in fields:
        yield place
    for name, field in fields.items():
        if inner := _model_in(field.annotation):
            yield from _places_of(key, inner, (*place, name))


def _steps(start: Sequence[str], end: Sequence[str]) -> int:
    """How many keys lie on the way from one place to another."""
    shared = next(
        (n for n, (one, other) in enumerate(zip(start, end, strict=False)) if one != other),
        min(len(start), len(end)),
    )
    return len(start) + len(end) - 2 * shared


def _named(place: Sequence[str]) -> str:
    return f"under {'.'.join(place)}" if place else "at the top of the file"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _written(value: Any) -> str:  # noqa: ANN401
    if value is None:
        return "nothing"
    try:
        return repr(value)
    except ValueError:  # Python does not write out more than 4,300 digits
        return "a number of thousands of digits"


def _keys_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """The keys allowed at a place."""
    for step in location:
        fields = _fields(model)
        if step in fields:  # otherwise an item of a list, or a name in a mapping
            model = _model_in(fields[step].annotation) or model
    return sorted(_fields(model))


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _model_in(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401
    """The model in a type such as tuple[Model, ...] or Model | None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)
