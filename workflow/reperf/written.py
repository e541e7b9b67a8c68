"""Files that people write, in YAML or JSON: read so that nothing is dropped or guessed silently.

PyYAML parses them, because Snakemake reads with it, too: what passes here means the same there.
ruamel.yaml would not do: it lets a key appear twice beside a `<<`, and never ends with a bomb of
them.
"""

import json
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from reperf.errors import ReperfError, faults_of

LARGEST = 1 << 18
"""Bytes of a file; a report's full matrix has 3,000."""
DEEPEST = 50
"""Lists and mappings inside each other."""
MOST_VALUES = 100_000
"""Values in a file; those that YAML's `*name` repeats count each time."""
LONGEST_NUMBER = 100
"""Characters of a number or a date."""

# The loader in C takes half a second for the largest file, not three.
if TYPE_CHECKING:
    _Loader = yaml.SafeLoader
else:
    _Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TEXT, _MAPPING, _LIST, _MERGE, _DATE, *_NUMBERS = (
    f"tag:yaml.org,2002:{kind}"
    for kind in ("str", "map", "seq", "merge", "timestamp", "int", "float")
)
# YAML 1.1 takes 012 for 10, 1_0 for 10 and 1:30 for 90.
_MISREAD = re.compile(r"[-+]?0\w|.*[_:]")


def read_written(path: Path | str) -> Any:  # noqa: ANN401 - whatever YAML and JSON can hold
    """Read a YAML or JSON file.

    Raises:
        ReperfError: one line that says why the file is neither YAML nor JSON, which key appears
            twice, which value people and YAML read differently, or what there is too much of.
    """
    with faults_of(path):
        text = _text(path)
        try:
            content = json.loads(text, object_pairs_hook=_each_once)
            if _levels(content) > DEEPEST:
                raise RecursionError
        except RecursionError:
            raise _too_deep() from None
        except ValueError:
            content = _parse(text)
        return content


def _text(path: Path | str) -> str:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - a path may be any text
            raise ReperfError("is not a file; allowed: a YAML or JSON file")
        with open(path, "rb") as stream:  # noqa: PTH123
            content = stream.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise ReperfError(getattr(error, "strerror", None) or str(error)) from None
    if len(content) > LARGEST:
        raise ReperfError(f"is too large; allowed: up to {LARGEST} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ReperfError(f"is not UTF-8: byte {error.start} is {content[error.start]}") from None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ReperfError(f"{twice[:80]!r} appears twice; allowed: each key once")
    return content


def _levels(content: Any) -> int:  # noqa: ANN401
    inner = content.values() if isinstance(content, dict) else content
    return 1 + max(map(_levels, inner), default=0) if isinstance(content, dict | list) else 0


def _too_deep() -> ReperfError:
    return ReperfError(f"is nested too deep; allowed: up to {DEEPEST} levels")


def _parse(text: str) -> Any:  # noqa: ANN401
    try:
        depth = 0
        for event in yaml.parse(text, Loader=_Loader):  # too deep, and making nodes would crash
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise _too_deep()
        values = _Values(text)
        root = values.get_single_node()
        return None if root is None else values.of(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        why = " ".join(filter(None, (error.context, error.problem)))
        if (
            mark
            and "\t" in "".join(text.splitlines()[mark.line : mark.line + 1])[: mark.column + 1]
        ):
            why += "; allowed: spaces, no tabs, before a line's first word"
        elif "mapping values are not allowed" in why:
            why += "; allowed: quotes around text in which a colon stands before a space"
        elif "undefined alias" in why:
            why += "; allowed: *name below the value that has &name, or quotes around text with *"
        elif "cannot start any token" in why or "a constructor for the tag" in why:
            why += "; allowed: quotes around text that begins with @, `, % or !"
        raise ReperfError(f"is not YAML: {where}{why}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ReperfError(f"is not YAML: {str(error).splitlines()[0]}") from None


class _Values(_Loader):
    """What a file's nodes stand for; what is repeated is read, and counted, each time."""

    _left = MOST_VALUES

    def of(self, node: yaml.Node, depth: int = 1) -> Any:  # noqa: ANN401
        self._left -= 1
        if self._left < 0:
            raise ReperfError(f"holds too many values; allowed: up to {MOST_VALUES}")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if depth > DEEPEST:
            raise _too_deep()
        if node.tag == _LIST:
            return [self.of(one, depth + 1) for one in node.value]
        if isinstance(node, yaml.MappingNode) and node.tag == _MAPPING:
            return self._mapping(node, depth)
        return self.construct_undefined(node)

    def _scalar(self, node: yaml.ScalarNode) -> Any:  # noqa: ANN401
        text, line = node.value, node.start_mark.line + 1
        if node.tag != _TEXT and len(text) > LONGEST_NUMBER:
            raise ReperfError(
                f"line {line}: a number of {len(text)} characters; allowed: up to {LONGEST_NUMBER}"
            )
        if node.tag == _DATE or (node.tag in _NUMBERS and _MISREAD.match(text)):
            raise ReperfError(
                f"line {line}: {text}; "
                "allowed: a number without a leading 0, _ or :, or text in quotes"
            )
        try:
            return self.construct_object(node)
        except ValueError:
            kind = node.tag.rpartition(":")[2]
            raise ReperfError(
                f"line {line}: {text[:80]!r} is no {kind}; allowed: without !!{kind}"
            ) from None

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key, node_of_value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise ReperfError(f"line {line}: a list or mapping as a key; allowed: text")
            name = _MERGE if key.tag == _MERGE else self._scalar(key)
            if name in lines:
                raise ReperfError(
                    f"{key.value[:80]!r} appears twice, in lines {lines[name]} and {line}; "
                    "allowed: each key once"
                )
            lines[name] = line
            value = self.of(node_of_value, depth + 1)
            if name != _MERGE:
                own[name] = value
                continue
            for part in reversed(value if isinstance(value, list) else [value]):
                if not isinstance(part, dict):
                    raise ReperfError(f"line {line}: << of what is no mapping; allowed: *name")
                merged |= part
        return merged | own
