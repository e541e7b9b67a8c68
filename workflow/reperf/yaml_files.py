"""Files that people write, in YAML or JSON: read so that nothing is dropped or guessed silently.

PyYAML parses them, because Snakemake reads with it, too: what passes here means the same there.
"""

import json
import re
from collections import Counter
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from reperf.errors import ReperfError, faults_of

# The loader in C takes half a second for the largest file, not three.
if TYPE_CHECKING:
    _Loader = yaml.SafeLoader
else:
    _Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# YAML 1.1 takes 012 for 10, 1_0 for 10 and 1:30 for 90.
_MISREAD = re.compile(r"[-+]?0\w|.*[_:]")
_HINTS = {
    "mapping values are not allowed": "quotes around text in which a colon stands before a space",
    "undefined alias": "*name below the value that has &name, or quotes around text with *",
    "a constructor for the tag": "quotes around text that begins with @, `, % or !",
    "cannot start any token": "quotes around text that begins with @, `, % or !",
}  # what PyYAML says -> what is allowed instead


def read_yaml_file(path: Path | str) -> Any:  # noqa: ANN401 - whatever YAML and JSON can hold
    """Read a YAML or JSON file; refused in one line, also for a key that appears twice."""
    with faults_of(path):
        text = _text(Path(path))
        try:
            return json.loads(text, object_pairs_hook=_each_once)
        except RecursionError:
            raise ReperfError("is nested too deep") from None
        except ValueError:
            return _parse(text)


def _text(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():
            raise ReperfError("is not a file; allowed: a YAML or JSON file")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ReperfError(f"is not UTF-8: byte {error.start}: {error.reason}") from None
    except (OSError, ValueError) as error:
        raise ReperfError(getattr(error, "strerror", None) or str(error)) from None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for name, times in Counter(name for name, _ in pairs).items():
        if times > 1:
            raise ReperfError(f"{name[:80]!r} appears twice; allowed: each key once")
    return dict(pairs)


def _parse(text: str) -> Any:  # noqa: ANN401
    try:
        return yaml.load(text, Loader=_Strict)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        why = " ".join(filter(None, (error.context, error.problem)))
        hint = next((hint for message, hint in _HINTS.items() if message in why), "")
        if (
            mark
            and "\t" in "".join(text.splitlines()[mark.line : mark.line + 1])[: mark.column + 1]
        ):
            hint = "spaces, no tabs, before a line's first word"
        raise ReperfError(f"is not YAML: {where}{why}{hint and f'; allowed: {hint}'}") from None
    except RecursionError:
        raise ReperfError("is nested too deep") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ReperfError(f"is not YAML: {str(error).splitlines()[0]}") from None


class _Strict(_Loader):
    """What YAML means to people: each key once, and numbers that are read as they look."""

    def number(self, node: yaml.ScalarNode) -> Any:  # noqa: ANN401
        """A number; no other word, and no date."""
        text, line = self.construct_scalar(node), node.start_mark.line + 1
        if node.tag.endswith("timestamp") or _MISREAD.match(text):
            raise ReperfError(
                f"line {line}: {text[:80]}; "
                "allowed: a number without a leading 0, _ or :, or text in quotes"
            )
        is_float = node.tag.endswith("float")
        return self.construct_yaml_float(node) if is_float else self.construct_yaml_int(node)

    def mapping(self, node: yaml.MappingNode) -> dict[Hashable, Any]:
        """A mapping; the keys that it merges in from others may be there, too."""
        lines: dict[object, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise ReperfError(f"line {line}: a list or mapping as a key; allowed: text")
            name = "<<" if key.tag.endswith("merge") else self.construct_object(key)
            if name in lines:
                raise ReperfError(
                    f"{key.value[:80]!r} appears twice, in lines {lines[name]} and {line}; "
                    "allowed: each key once"
                )
            lines[name] = line
        self.flatten_mapping(node)
        return self.construct_mapping(node, deep=True)


for _kind in ("int", "float", "timestamp"):
    _Strict.add_constructor(f"tag:yaml.org,2002:{_kind}", _Strict.number)
_Strict.add_constructor("tag:yaml.org,2002:map", _Strict.mapping)
