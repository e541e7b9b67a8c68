"""Files that people write, in YAML or JSON: read so that nothing is dropped or guessed silently."""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from reperf.errors import ReperfError, one_line_errors

LARGEST = 1 << 18
"""Bytes of a file; a report's full matrix has 3,000."""
DEEPEST = 50
"""Lists and mappings inside each other."""
MOST_VALUES = 100_000
"""Values in a file; those that YAML's `*name` repeats count each time."""
LONGEST_NUMBER = 100
"""Characters of a number or a date."""

# The loader in C takes half a second for the largest file, not three.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TEXT, _MERGE = (f"tag:yaml.org,2002:{kind}" for kind in ("str", "merge"))


def read_written(path: Path | str) -> Any:  # noqa: ANN401 - whatever YAML and JSON can hold
    """Read a YAML or JSON file.

    Raises:
        ReperfError: one line that says why the file is neither YAML nor JSON, which key appears
            twice, or what there is too much of.
    """
    try:
        content = _parse(_text(path))
        _check_size(content)
    except ReperfError as fault:
        raise ReperfError(f"{path}: {fault}") from None
    return content


def read_configfiles_of_snakemake() -> None:
    """Make Snakemake read configuration files this way.

    Snakemake reads them before the first line of a Snakefile, lets the last of two equal keys win,
    and answers faults that it does not foresee with a traceback.
    """
    from snakemake.common import configfile  # noqa: PLC0415 - only where Snakemake runs

    configfile._load_configfile = _for_snakemake


def _for_snakemake(path: Path | str, filetype: str = "Config") -> dict:
    with one_line_errors():
        content = read_written(path)
        if not isinstance(content, dict):
            raise ReperfError(f"{path}: allowed: a mapping of keys to values")
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


def _parse(text: str) -> Any:  # noqa: ANN401
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text, object_pairs_hook=_each_once)
        except RecursionError:
            raise _too_deep() from None
        except ValueError:
            pass  # YAML's own braces
    try:
        _check_depth(text)
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
            for node in _nodes(root):
                _check_node(loader, node)
            return None if root is None else loader.construct_document(root)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        why = " ".join(filter(None, (error.context, error.problem)))
        raise ReperfError(f"is not YAML: {where}{why}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise ReperfError(f"is not YAML: {str(error).splitlines()[0]}") from None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ReperfError(f"{twice[:80]!r} appears twice; allowed: each key once")
    return content


def _too_deep() -> ReperfError:
    return ReperfError(f"is nested too deep; allowed: up to {DEEPEST} levels")


def _check_depth(text: str) -> None:
    """Refuse a depth at which the loader would run out of stack."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise _too_deep()


def _nodes(root: yaml.Node | None) -> Iterator[yaml.Node]:
    """Every node once, however often its name repeats it."""
    seen: set[int] = set()
    waiting = [root] if root else []
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            if isinstance(node, yaml.MappingNode):
                waiting += [part for pair in node.value for part in pair]
            elif isinstance(node, yaml.SequenceNode):
                waiting += node.value


def _check_node(loader: yaml.SafeLoader, node: yaml.Node) -> None:
    if isinstance(node, yaml.ScalarNode):
        if node.tag != _TEXT and len(node.value) > LONGEST_NUMBER:
            line = node.start_mark.line + 1
            raise ReperfError(
                f"line {line}: a number of {len(node.value)} characters; "
                f"allowed: up to {LONGEST_NUMBER}"
            )
    elif isinstance(node, yaml.MappingNode):
        _check_keys(loader, node)


def _check_keys(loader: yaml.SafeLoader, node: yaml.MappingNode) -> None:
    lines: dict[Any, int] = {}
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise ReperfError(f"line {line}: a list or mapping as a key; allowed: text")
        _check_node(loader, key)
        name = _MERGE if key.tag == _MERGE else loader.construct_object(key)
        if name in lines:
            raise ReperfError(
                f"{key.value[:80]!r} appears twice, in lines {lines[name]} and {line}; "
                "allowed: each key once"
            )
        lines[name] = line


def _check_size(content: Any) -> None:  # noqa: ANN401
    """Refuse content that is small only until its repetitions are written out."""
    count = 0
    waiting = [(content, 1)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, Mapping | list | tuple | set):
            if depth > DEEPEST:
                raise _too_deep()
            count += len(value)
            if count > MOST_VALUES:
                raise ReperfError(f"holds too many values; allowed: up to {MOST_VALUES}")
            inner = value.values() if isinstance(value, Mapping) else value
            waiting += [(one, depth + 1) for one in inner]
