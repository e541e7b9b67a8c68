"""Results as JUnit's XML, which CI systems show."""

from collections.abc import Iterable
from typing import Literal, NamedTuple
from xml.etree import ElementTree as ET

from reperf.text import printable

Outcome = Literal["failure", "skipped", ""]


class Case(NamedTuple):
    """A test case: what was judged, and how."""

    group: str
    name: str
    outcome: Outcome  # "": passed
    text: str


def junit(name: str, cases: Iterable[Case], summary: str) -> str:
    """JUnit XML of a suite of test cases; `summary` is of the whole suite."""
    suite = ET.Element("testsuite", name=printable(name))
    for case in cases:
        element = ET.SubElement(
            suite, "testcase", classname=printable(case.group), name=printable(case.name)
        )
        if case.outcome:
            ET.SubElement(element, case.outcome, message=printable(case.text))
        ET.SubElement(element, "system-out").text = printable(case.text)
    suite.set("tests", str(len(suite)))
    for outcome, counted in (("failure", "failures"), ("skipped", "skipped")):
        suite.set(counted, str(len(suite.findall(f"testcase/{outcome}"))))
    ET.SubElement(suite, "system-out").text = printable(summary)
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode") + "\n"
