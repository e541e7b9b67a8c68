"""What is wrong with a file that people write, in one line and in their words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from annotated_types import Ge, Le
from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

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
WRONG_TYPES = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "a mapping of keys to values",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number",
    "int_type": "a whole number",
    "model_type": "a mapping of keys to values",
    "path_type": "a path",
    "string_type": "text",
    "tuple_type": "a list",
}
OUT_OF_RANGE = ("greater_than_equal", "less_than_equal", "finite_number")


def _no_number(value: Any) -> Any:  # noqa: ANN401 - raw YAML
    if value in (0, 1, "0", "1") and not isinstance(value, bool):
        raise PydanticCustomError("bool_type", "")  # WRONG_TYPES says it
    return value


YesOrNo = Annotated[bool, BeforeValidator(_no_number)]
"""What YAML reads as true or false; text may say it, as Snakemake's --config does."""


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
    *around, last = fault["loc"] or ("",)
    fields = getattr(_model_at(model, tuple(around)), "model_fields", {})
    # Of a key that is left out, pydantic says the field's name, and not what it is called in files.
    named = fields[last].alias or last if last in fields else last
    place = _place(content, (*around, named) if fault["loc"] else ())
    return ": ".join(filter(None, [cut(place), _complaint(fault, model, missing)]))


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
    return item if isinstance(item, str) and item.strip() else str(position + 1)


def _complaint(fault: ErrorDetails, model: type[BaseModel], missing: list[str]) -> str:
    """What is wrong with a value, and what is allowed instead.

    Args:
        fault: what pydantic says.
        model: of the whole file.
        missing: the keys that are missing beside an unknown one.
    """
    kind, value = fault["type"], fault["input"]
    if kind == "missing":
        return "; ".join(filter(None, ["is missing", _needed(model, fault["loc"])]))
    if kind == "extra_forbidden":
        return _of_unknown_key(fault["loc"], model, missing)
    message = _message(fault, model)
    if not isinstance(value, dict | list | tuple):
        return f"got {shown(value)}; {message}"
    # What is in it is not shown: its place says enough.
    if kind in ("too_short", "too_long") or not message.startswith("allowed:"):
        return message
    found = "mapping" if isinstance(value, dict) else "list"
    return f"got {'a' if value else 'an empty'} {found}; {message}"


def _needed(model: type[BaseModel], place: tuple[int | str, ...]) -> str:
    """What is allowed for a key that is missing: what an empty text there would be told."""
    field = _field_at(model, place)
    try:
        if field:
            _type_of(field).validate_python("")
    except ValidationError as error:
        return _message(error.errors(include_url=False)[0] | {"loc": place}, model)
    return ""


def _message(fault: ErrorDetails, model: type[BaseModel]) -> str:
    """What is allowed in place of a value."""
    kind, value, place = fault["type"], fault["input"], fault["loc"]
    message = fault["msg"].removeprefix("Value error, ").replace("Input should be", "allowed:")
    field = _field_at(model, place)
    if kind in WRONG_TYPES or kind in OUT_OF_RANGE:
        message = f"allowed: {_in_words(kind, field)}{_what_it_is(model, place)}"
    if kind == "string_type" and isinstance(value, int | float):
        message = "allowed: text, in quotes where YAML reads a number, true or false"
    elif kind == "tuple_type" and field and isinstance(value, str) and _takes(field, value):
        message = f"allowed: a list; did you mean [{cut(value)}]?"
    elif kind == "tuple_type" and field and _model_at(model, place) and not _takes(field, "a"):
        message = f"allowed: a list of mappings with the keys {', '.join(_keys_at(model, place))}"
    elif kind == "model_type" and place:
        message = f"allowed: {WRONG_TYPES[kind]}, of {', '.join(_keys_at(model, place))}"
    elif kind == "too_short":
        message = "allowed: at least one item"
    elif kind == "string_pattern_mismatch":
        message = f"allowed: text that matches {fault['ctx']['pattern']}"
    elif kind in ("string_too_long", "too_long"):
        what = "characters" if kind == "string_too_long" else "items"
        message = f"allowed: up to {fault['ctx']['max_length']} {what}"
    elif kind == "literal_error":
        message += did_you_mean(value, re.findall(r"'([^']*)'", fault["ctx"]["expected"]))
    return message


def _in_words(kind: str, field: FieldInfo | None) -> str:
    """What type and range a value must have."""
    parts = [*_parts_of(field)]
    words = WRONG_TYPES.get(kind, "a number" if float in parts else "a whole number")
    if not words.endswith("number"):
        return words
    least: Any = next((part.ge for part in parts if isinstance(part, Ge)), None)
    most: Any = next((part.le for part in parts if isinstance(part, Le)), None)
    if least is None or most is None:
        return words
    form = "," if isinstance(most, int) and float not in parts else "g"
    return f"{words}, {least:{form}} to {most:{form}}"


def _parts_of(field: FieldInfo | None) -> Iterator[Any]:
    """All that a field's type is made of, its limits among it."""
    todo: list[Any] = [field] if field else []
    while todo:
        part = todo.pop()
        todo += get_args(part)
        if isinstance(part, FieldInfo):
            todo += [part.annotation, *part.metadata]
        yield part


def _what_it_is(model: type[BaseModel], place: tuple[int | str, ...]) -> str:
    """The first words of a key's description, which say what it counts; nothing inside of it."""
    around = _model_at(model, place[:-1])
    field = _fields(around).get(str(place[-1])) if around and place else None
    words = ((field and field.description) or "").partition(";")[0]
    return f": {words}" if words and not words.startswith("left out") else ""


def _type_of(field: FieldInfo) -> TypeAdapter:
    """What checks a value of a field alone."""
    kind: Any = Annotated[field.annotation, "", *field.metadata]  # at least one, if only a text
    return TypeAdapter(kind)


def _takes(field: FieldInfo, word: str) -> bool:
    """Whether a list of words may stand there, or of such words, if this is not the right one."""
    try:
        _type_of(field).validate_python([word])
    except ValidationError as error:
        return all(len(fault["loc"]) > 1 for fault in error.errors())
    return True


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
    shared = [*takewhile(lambda both: both[0] == both[1], zip(start, end, strict=False))]
    return len(start) + len(end) - 2 * len(shared)


def _named(place: Sequence[str]) -> str:
    return f"under {'.'.join(place)}" if place else "at the top of the file"


def cut(text: str) -> str:
    """A text as messages show it, cut short."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def shown(value: Any) -> str:  # noqa: ANN401
    """A value of a file as messages show it, cut short."""
    return cut(_written(value))


def _written(value: Any) -> str:  # noqa: ANN401
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true, as YAML reads on and yes" if value else "false, as YAML reads off and no"
    try:
        return repr(value)
    except ValueError:  # Python does not write out more than 4,300 digits
        return "a number of thousands of digits"


def _keys_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """The keys allowed at a place."""
    return sorted(_fields(_model_at(model, location) or model))


def _field_at(model: type[BaseModel], location: tuple[int | str, ...]) -> FieldInfo | None:
    """What the model says of a place, or of the list or mapping that the place is in."""
    found = None
    around: type[BaseModel] | None = model
    for step in location:
        field = _fields(around).get(str(step)) if around else None
        if field:  # otherwise an item of a list, or a name in a mapping
            found, around = field, _model_in(field.annotation)
    return found


def _model_at(model: type[BaseModel], location: tuple[int | str, ...]) -> type[BaseModel] | None:
    """The model of what stands at a place; None for a value that is not made of keys."""
    field = _field_at(model, location)
    return _model_in(field.annotation) if field else model


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _model_in(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401
    """The model in a type such as tuple[Model, ...] or Model | None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)
