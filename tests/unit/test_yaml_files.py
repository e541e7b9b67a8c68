"""Files that people write: what YAML and JSON hold, and one line for what no file should."""

import os
from pathlib import Path

import pytest
from reperf.errors import ReperfError
from reperf.text import printable
from reperf.yaml_files import read_yaml_file

from tests.helpers.refusal import refused_in_one_line

THREE = {"a": {"x": 1}, "b": {"x": 2, "y": 2}, "c": {"x": 1, "y": 2}}

NO_TOKEN = (
    "is not YAML: line {}: while scanning for the next token found character that cannot start any "
    "token; allowed: {}"
)
TWICE = "{} appears twice, in lines {}"
FAULTS = {
    "a key twice": ("a: 3\ntitle: a\na: 9\n", TWICE.format("'a'", "1 and 3; allowed: each key on")),
    "inside": ("suites:\n- name: a\n  name: b\n", TWICE.format("'name'", "2 and 3; allowed: eac")),
    "in braces": ("{title: a, title: b}", TWICE.format("'title'", "1 and 1")),
    "in other words": ("yes: 1\non: 2", TWICE.format("'on'", "1 and 2")),
    "beside merged": ("a: &a {x: 1}\nb:\n  <<: *a\n  y: 2\n  y: 3", TWICE.format("'y'", "4 and 5")),
    "a key twice in JSON": ('{"a": {"b": 1, "b": 2}}', "'b' appears twice; allowed: each key once"),
    "a key twice in what is repeated": ("a: &a {x: 1, x: 2}\nb: *a", "'x' appears twice"),
    "a list as a key": ("? [a]\n: 3", "line 1: a list or mapping as a key; allowed: text"),
    "a list of itself": ("a: &a [*a]", "is not YAML: line 1: found unconstructable recursive"),
    "deep braces": ("{a: " * 3000 + "}" * 3000, "is nested too deep"),
    "very deep JSON": ("[" * 100_000 + "]" * 100_000, "is nested too deep"),
    "many digits": ("repeats: " + "9" * 200_000, "is not YAML: Exceeds the limit (4300 digits)"),
    "many digits of base 60": ("a: 1" + ":1" * 99_999, f"line 1: 1{':1' * 39}:; allowed: a number"),
    "merged text": ("a: &a x\nb: {<<: *a}", "is not YAML: line 1: while constructing a mapping"),
    "a date": ("title: 2024-01-01", "line 1: 2024-01-01; allowed: a number without a leading 0"),
    "no month": ("title: 2024-13-45", "line 1: 2024-13-45; allowed: a number without"),
    "a tab first": (
        "title:\n\t- x",
        NO_TOKEN.format(2, "spaces, no tabs, before a line's first word"),
    ),
    "backquotes": (
        "a: `b`",
        NO_TOKEN.format(1, "quotes around text that begins with @, `, % or !"),
    ),
    "a colon in text": (
        "title: a: b",
        "is not YAML: line 1: mapping values are not allowed in this context; allowed: quotes ",
    ),
    "no number by its tag": ("a: 1\nrepeats: !!int 3x", "is not YAML: invalid literal for int()"),
    "a list by a number's tag": ("a: !!int [3]", "is not YAML: line 1: expected a scalar node"),
    "a tag of Python": (
        "a: !!python/name:os.system",
        "is not YAML: line 1: could not determine a ",
    ),
    "two documents": ("a: 1\n---\nb: 2", "is not YAML: line 2: expected a single document"),
    "a key that is not closed": ("a: [1", "is not YAML: line "),
    "an unknown name": ("a: *b", "is not YAML: line 1: found undefined alias; allowed: *name "),
    "a NUL": ("title: a\0b", "is not YAML: unacceptable character #x0000"),
    "Latin 1": ("title: caf\u00e9".encode("latin-1"), "is not UTF-8: byte 10: "),
    "UTF-16": ("title: a".encode("utf-16"), "is not UTF-8: byte 0: "),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0", "is not UTF-8: byte 0: "),
}


@pytest.mark.parametrize(
    "number",
    ["012", "1_0", "-012", "+0_1", "00", "0x1F", "0b11", "1:30", "01.5", "1_0.5", "1:30.5"],
)
def test_a_number_that_yaml_reads_as_another_one_is_refused(number: str, tmp_path: Path):
    file = tmp_path / "my.yaml"
    allowed = "allowed: a number without a leading 0, _ or :, or text in quotes"
    for text in (f"a: b\nrepeats: {number}", f"- a\n- {number}", f"a: b\n{number}: a"):
        file.write_text(text, encoding="utf-8")
        with refused_in_one_line(f"{file}: line 2: {number}; {allowed}"):
            read_yaml_file(file)
    file.write_text(f"a: '{number}'", encoding="utf-8")
    assert read_yaml_file(file) == {"a": number}


@pytest.mark.parametrize(("content", "fault"), FAULTS.values(), ids=FAULTS)
def test_what_no_file_should_hold_is_one_line(content: str | bytes, fault: str, tmp_path: Path):
    file = tmp_path / "my.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with refused_in_one_line(f"{file}: {fault}") as refusal:
        read_yaml_file(file)
    assert len(str(refusal.value)) < len(str(file)) + 300


def test_what_is_no_file_is_one_line_and_nothing_is_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    no_file = "is not a file; allowed: a YAML or JSON file"
    for path, fault in {
        **dict.fromkeys(("/dev/zero", tmp_path, tmp_path / "pipe"), no_file),
        tmp_path / "loop": "Too many levels of symbolic links",
        tmp_path / "nowhere": "No such file or directory",
        tmp_path / ("a" * 300): "File name too long",
        f"{tmp_path}/a\0b": "embedded null byte",
    }.items():
        with pytest.raises(ReperfError) as refusal:
            read_yaml_file(path)
        assert str(refusal.value) == printable(f"{path}: {fault}")


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("", None),
        ("\ufefftitle: a", {"title": "a"}),
        ('{"a": [1, 2.5, null]}', {"a": [1, 2.5, None]}),
        ('{\n\t"a": true\n}', {"a": True}),
        ("{a: b}", {"a": "b"}),
        ("a: [0, -0, +7, 120, 0.5, .5, 1.5e+3]", {"a": [0, 0, 7, 120, 0.5, 0.5, 1500.0]}),
        ("a: [yes, off, ~, 0o12, 1e3]", {"a": [True, False, None, "0o12", "1e3"]}),
        ('{"a": 1e3, "b": "\\ud83d\\ude00"}', {"a": 1000.0, "b": "\U0001f600"}),
        ("a: &a [x]\nb: *a\nc: [*a, *a]", {"a": ["x"], "b": ["x"], "c": [["x"], ["x"]]}),
        ("a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b]}", THREE),
        # Keys of one's own before those that are merged in, as YAML has it.
        (
            "a: &a {x: 1}\nb: &b {<<: *a, x: 2}\nc: {<<: *b, y: 3}",
            {"a": {"x": 1}, "b": {"x": 2}, "c": {"x": 2, "y": 3}},
        ),
    ],
)
def test_all_else_is_read_as_yaml_and_json_have_it(text: str, content: object, tmp_path: Path):
    file = tmp_path / "my.yaml"
    file.write_text(text, encoding="utf-8")
    assert read_yaml_file(file) == content
