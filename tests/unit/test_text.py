"""Text from outside: what a terminal, a page or a table may be shown of it."""

from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from reperf.errors import ReperfError
from reperf.text import as_field, from_field, in_markdown, printable, printable_lines

ANY = st.text(st.characters(exclude_categories=()))
"""Any text that Python can hold, lone surrogates included."""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("one\r\ntwo\x0b\x0c\x85\u2028\u2029", r"one\r\ntwo\x0b\x0c\x85\u2028\u2029"),
        ("a\tb\x08\x7f\x9b", r"a\tb\x08\x7f\x9b"),
        ("\u202egpj.exe\u2066\u200f", r"\u202egpj.exe\u2066\u200f"),
        ("ze\u200bro\u00ad\ufeff\u2060\u3164", r"ze\u200bro\xad\ufeff\u2060\u3164"),
        ("\udcff\ud800\uffff\U000e0041", r"\udcff\ud800\uffff\U000e0041"),
        ("\u00fcber \u6570\u636e, 5\u00a0% \u2013 e\u0301 C:\\logs", None),
    ],
)
def test_what_cannot_be_seen_or_is_obeyed_stands_as_its_escape(text, shown):
    assert printable(text) == (shown or text)


@given(ANY)
def test_printable_text_is_one_line_that_any_file_can_hold(text):
    shown = printable(text)
    assert shown.encode() is not None
    assert {category(char) for char in shown}.isdisjoint({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
    assert printable(shown) == shown
    assert len(printable_lines(text).split("\n")) == len(text.split("\n"))


@given(ANY)
def test_a_field_gives_its_text_back(text):
    field = as_field(text)
    assert from_field(field) == text
    assert field[:1] not in (*"=+-@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
    assert printable(field) == field


@pytest.mark.parametrize("text", ["1. one", "2) two", "- three", "# four"])
def test_no_text_becomes_a_list_or_a_heading_of_markdown(text):
    [paragraph] = [one for one in MarkdownIt().parse(in_markdown(text)) if one.type == "inline"]
    assert MarkdownIt().parse(in_markdown(text))[0].type == "paragraph_open"
    assert "".join(part.content for part in paragraph.children) == text


def test_the_one_line_of_an_error_is_one_line_on_a_terminal_too():
    assert str(ReperfError("\x1b[2Ja\nb: no")) == r"\x1b[2Ja\nb: no"
