"""The logs of an archive, ours or anyone's."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePath

from pydantic import BaseModel, Field, ValidationError

from reperf.config import Window
from reperf.errors import ReperfError
from reperf.faults import first_fault
from reperf.layout import RUN_RECORD, TRIES
from reperf.measuring.answer import Answer, Question, refused, without_doubt
from reperf.measuring.likeness import Name, by_name
from reperf.measuring.one_log import beside, of_file, read_record
from reperf.measuring.safe_archive import DAMAGE, ArchivedFile, is_archive, open_archive
from reperf.member_names import CELLS, CONFIG, MANIFEST
from reperf.text import natural

NESTED = "it is an archive in an archive, which is not read; unpack the outer one first"


def of_archive(path: Path, question: Question) -> list[Answer]:
    """Measure the logs of an archive.

    Raises:
        ReperfError: it cannot be read, or it seems to be one of ours and is not.
    """
    with open_archive(path) as files:
        return list(without_doubt(str(path), _of_files(path, files, question), question))


def _of_files(path: Path, files: list[ArchivedFile], question: Question) -> list[list[Answer]]:
    """What an archive's files give, in the natural order of their names."""
    inside = {file.name for file in files}
    recorded = {} if question.method.window else _recorded(files)
    names = {file.name: _name_inside(file.name, inside) for file in files}
    logs = [file for file in files if names[file.name] != "other"]
    records = _records_beside(logs, files)
    found = []
    for file in logs:
        name, record = f"{path}/{file.name}", records.get(beside(file.name))
        if is_archive(PurePath(file.name)):
            found.append([refused(name, "unreadable", NESTED, question)])
            continue
        asked = _as_recorded(question, recorded, file.name)
        try:
            with file.open() as stream:
                found.append(of_file(names[file.name], name, stream, asked, record))
        except ReperfError as error:
            found.append([refused(name, "unreadable", str(error), question)])
        except (OSError, *DAMAGE) as error:
            why = f"damaged in the archive: {error}"
            found.append([refused(name, "unreadable", why, question)])
    return sorted(found, key=lambda some: natural(some[0].measured.log if some else ""))


def _recorded(files: list[ArchivedFile]) -> dict[str, tuple[Window, str | None]]:
    """How an archive of ours was measured: beginning of a log's name -> window and unit.

    Nothing else of its configuration is read: another version's may hold what this one does not
    know.

    Raises:
        ReperfError: it seems to be one of ours, but its configuration is not valid.
    """
    members = {file.name: file for file in files}
    if not {CONFIG, CELLS, MANIFEST} <= members.keys():
        return {}
    try:
        with members[CONFIG].open() as stream:
            report = _OfReport.model_validate_json(read_record(stream))
    except ValidationError as error:
        fault = first_fault(error, _OfReport, {})
        raise ReperfError(f"{CONFIG}: is no configuration: {fault}") from None
    except (OSError, *DAMAGE) as error:
        raise ReperfError(f"{CONFIG}: is no configuration: {error}") from None
    found = {}
    for suite in report.suites:
        usual = suite.window or report.window
        found[f"results/runs/{suite.name}/"] = usual, suite.unit
        for source in suite.sources:
            found[source.path] = source.window or usual, suite.unit
    return found


class _OfSource(BaseModel):
    path: str
    window: Window | None = None


class _OfSuite(BaseModel):
    """Before reperf 0.3 no suite had a window or a unit of its own."""

    name: str
    window: Window | None = None
    unit: str | None = None
    sources: tuple[_OfSource, ...] = Field((), alias="from")


class _OfReport(BaseModel):
    """What the configuration in an archive says about how it was measured."""

    window: Window
    suites: tuple[_OfSuite, ...]


def _as_recorded(
    question: Question, recorded: Mapping[str, tuple[Window, str | None]], name: str
) -> Question:
    method = question.method
    for root, (window, unit) in recorded.items():
        if name.startswith(root):
            method = replace(method, window=window, unit=method.unit or unit)
            return replace(question, method=method)
    return question


def _name_inside(name: str, inside: set[str]) -> Name:
    """What the name of a file in an archive says."""
    path = PurePath(name)
    if path.parent.parent.name == TRIES and str(path.parents[2] / RUN_RECORD) in inside:
        return "other"
    hidden = any(part.startswith(".") for part in path.parts)
    return "sure" if is_archive(path) and not hidden else by_name(path)


def _records_beside(logs: list[ArchivedFile], files: list[ArchivedFile]) -> Mapping[str, bytes]:
    wanted = {beside(log.name) for log in logs}
    records = {}
    for file in files:
        if file.name in wanted:
            try:
                with file.open() as stream:
                    records[file.name] = read_record(stream)
            except (OSError, *DAMAGE) as error:
                raise ReperfError(f"{file.name}: damaged in the archive: {error}") from None
    return records
