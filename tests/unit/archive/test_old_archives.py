"""Archives of earlier versions: verified, measured and cited, and rebuilt or refused by name."""

import csv
import io
import json
from pathlib import Path
from zipfile import ZipFile

import pytest
from reperf.archive.container import verified
from reperf.archive.contents import CELL_LIST
from reperf.archive.rebuild import as_earlier, make_results, without_ids
from reperf.cli import main
from reperf.config import Report, Suite, Window, load_report
from reperf.drawing import figures
from reperf.drawing.labels import title_of
from reperf.layout import FIRST_KINDS, figures_of, tables_of
from reperf.measuring.counted import Counted
from reperf.measuring.log_sources import measure_suite
from reperf.training.record import RunRecord

FOLDER = Path(__file__).parents[2] / "data" / "archives"
ARCHIVES = sorted(FOLDER.glob("*/*.zip"))
OWN = FOLDER / "0.2.0" / "resnet50-fp32.zip"


def table(path: Path, name: str) -> list[dict[str, str]]:
    """A table of the suite that an archive holds."""
    with ZipFile(path) as archive:
        text = archive.read(f"results/suites/{path.stem}/{name}.csv").decode()
    return list(csv.DictReader(io.StringIO(text)))


def report_of(archive: ZipFile) -> Report:
    """The configuration of an archive of 0.2.0, as people would write it today."""
    config = json.loads(archive.read("config.json"))
    for suite in config["suites"]:
        suite["shape"] = {"image_size": suite.pop("image_size")}
        for key in [key for key, value in suite.items() if value is None]:
            del suite[key]
    return load_report(config)


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.stem)
class TestEach:
    def test_it_verifies(self, path, capsys):
        assert main(["archive", "verify", str(path)]) == 0
        assert "all as they were archived" in capsys.readouterr().out

    def test_it_is_refused_in_one_line_that_names_the_version_that_rebuilds_it(
        self, path, tmp_path, capsys
    ):
        assert main(["archive", "rebuild", str(path), "--to", str(tmp_path / "new")]) == 1
        [said] = capsys.readouterr().err.splitlines()
        assert f"; reperf {path.parent.name} made the archive, and rebuilds it " in said
        assert " with the libraries in requirements.txt of that version; this is " in said

    def test_its_logs_give_the_tables_that_they_gave(self, path, tmp_path, monkeypatch):
        measurements, summary = tables_of(path.stem)
        with verified(path) as archive:
            archive.extractall(tmp_path)
            report = report_of(archive)
            cells = CELL_LIST.validate_json(archive.read("cells.json"))
            old = {name: archive.read(name) for name in (measurements, summary)}
            drawn = {name: archive.read(name) for name in figures_of(path.stem, FIRST_KINDS)}
        monkeypatch.chdir(tmp_path)
        # Titles say more today; all else is drawn as it was.
        said = {"shape": "", "input": "", "device": ""}
        monkeypatch.setattr(figures, "title_of", lambda cells: title_of(cells.assign(**said)))
        monkeypatch.setattr(figures, "repeats_of", lambda cells: "")
        if path.stem == "logs-of-others":  # one topology's are made of another's: told today
            monkeypatch.setattr(Counted, "again", lambda *_: "")
        make_results(report, cells)
        # The last columns are new; nothing else has changed.
        for name, archived in old.items():
            assert as_earlier(Path(name).read_bytes(), archived) == archived
        if any(row["speedup"] for row in table(path, "summary")):
            assert {name: without_ids(Path(name).read_bytes()) for name in drawn} == {
                name: without_ids(figure) for name, figure in drawn.items()
            }


def test_measuring_an_old_archive_gives_its_tables_numbers_by_its_own_window(capsys):
    assert main(["measure", "--json", str(OWN)]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    rows = table(OWN, "measurements")
    for one, row in zip(found, rows, strict=True):
        assert one["log"].endswith(row["log"])
        assert (one["first"], one["last"]) == (int(row["first"]), int(row["last"])) == (2, 4)
        assert (one["throughput"], one["unit"]) == (float(row["throughput"]), row["unit"])


def test_an_old_archive_is_a_source_of_logs():
    asked = {"name": "later", "workload": "resnet50", "precision": "fp32", "from": str(OWN)}
    asked |= {"shape": {"image_size": 32}, "window": Window(warmup=2, measured=2)}
    suite = Suite.model_validate(asked | {"iterations": 4, "print_every": 1})
    rows = measure_suite(suite, [])
    assert [row["throughput"] for row in rows] == [
        float(row["throughput"]) for row in table(OWN, "measurements")
    ]
    other = suite.model_copy(update={"shape": {"image_size": 64}})
    assert {row["reason"] for row in measure_suite(other, [])} == {
        "image size is 32 by the log, 64 by the configuration"
    }


def test_an_old_run_record_keeps_its_seal_and_says_its_shape():
    name = "results/runs/resnet50-fp32/pytorch/1n2g/1/run.json"
    with ZipFile(OWN) as archive:
        record = RunRecord.parse(archive.read(name), name)
    assert record.record_version == 2
    assert record.run.shape == {"image_size": 32}
