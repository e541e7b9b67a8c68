"""Archives that mean harm are refused in one line, and nothing is written anywhere."""

import gzip
import io
import os
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reperf.measuring.archives import MOST_MEMBERS, open_archive
from reperf.measuring.found_logs import NESTED, MeasureRequest, measure_paths
from reperf.measuring.measure import Method

from tests.helpers.refusal import refused_in_one_line

LOG = (Path(__file__).parents[2] / "data/logs/oneflow_resnet50_2n8g_b128_fp32.log").read_bytes()
SPEED = 5915.65
NAME = "2n8g/r50_b128_fp32_1.log"
DIRECTORY = b"PK\x01\x02"


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return path


def tarred(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as archive:
        for info, content in members:
            info.size = info.size or len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def entry(name: str, kind: bytes = tarfile.REGTYPE, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def packed(folder: Path, suffix: str, members: dict[str, bytes]) -> bytes:
    path = folder / f"packed.{suffix}"
    if suffix == "zip":
        return zipped(path, members).read_bytes()
    return tarred(path, *((entry(name), content) for name, content in members.items())).read_bytes()


def changed(path: Path, offset: int, value: int, form: str = "<I") -> Path:
    """A zip file with another number at a place of its directory's last entry."""
    content = bytearray(path.read_bytes())
    struct.pack_into(form, content, content.rindex(DIRECTORY) + offset, value)
    path.write_bytes(content)
    return path


def why_refused(path: Path) -> str:
    with refused_in_one_line(f"{path}: ") as refusal, open_archive(path):
        pass
    return str(refusal.value)


def measured(path: Path) -> list:
    return [one.measured for one in measure_paths([path], MeasureRequest(Method()))]


def speeds(path: Path) -> list[float | None]:
    return [one.throughput and round(one.throughput, 2) for one in measured(path)]


@pytest.mark.parametrize("suffix", ["zip", "tar", "tar.gz", "tgz"])
def test_logs_in_an_archive_are_measured(tmp_path, suffix):
    path = tmp_path / f"logs.{suffix}"
    path.write_bytes(packed(tmp_path, suffix, {"./a/x.log": LOG, f"b/{NAME}": LOG, "a.png": b""}))
    assert speeds(path) == [SPEED, SPEED]
    assert measured(path)[1].log == f"{path}/b/{NAME}"


PACKS = ["zip", "tar", "tar.gz"]


def test_an_archive_in_an_archive_is_not_read_and_named(tmp_path):
    inner = packed(tmp_path, "tar.gz", {NAME: LOG})
    members = {"a.tar.gz": inner, "._b.zip": b"no zip", "d.log": LOG}
    found = measured(zipped(tmp_path / "x.zip", members))
    assert [one.log for one in found] == [f"{tmp_path}/x.zip/a.tar.gz", f"{tmp_path}/x.zip/d.log"]
    assert [one.reason for one in found] == [NESTED, ""]


@pytest.mark.parametrize("suffix", PACKS)
def test_a_compressed_log_in_an_archive_is_measured(tmp_path, suffix):
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(packed(tmp_path, suffix, {"x.log.gz": gzip.compress(LOG), "a.log": LOG}))
    assert speeds(path) == [SPEED] * 2


@pytest.mark.parametrize(
    "name",
    ["../x.log", "a/../../x.log", "/etc/x.log", "C:/x.log", "a\\..\\x.log", "a//x.log", "a\nb.log"],
)
def test_names_that_leave_the_archive_are_refused(tmp_path, name):
    expected = "leaves the archive or cannot be a name"
    assert expected in why_refused(zipped(tmp_path / "x.zip", {name: LOG}))
    assert expected in why_refused(tarred(tmp_path / "x.tar", (entry(name), LOG)))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.tar", "x.zip"]


def zip_of_a_link(path: Path) -> None:
    info = zipfile.ZipInfo("x.log")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(info, "/etc/passwd")


def bomb(path: Path) -> None:
    if path.suffix == ".zip":
        zipped(path, {"x.log": bytes(70 << 20)})
        return
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(entry("x.log", size=70 << 20).tobuf())
        for _ in range(70):
            stream.write(bytes(1 << 20))


def long_directory(path: Path) -> None:
    """It claims a million members, which nobody lists."""
    content = zipped(path, {"a.log": LOG}).read_bytes()
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, len(content) - 22, 1)
    end64 = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 10**6, 10**6, 60, 0)
    end = bytearray(content[-22:])
    struct.pack_into("<HHII", end, 8, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
    path.write_bytes(content[:-22] + end64 + locator + end)


def many_members(path: Path) -> None:
    with gzip.open(path, "wb", compresslevel=1) as stream:
        for _ in range(MOST_MEMBERS // 1000 + 1):
            stream.write(entry("x.log").tobuf() * 1000)


def long_header(path: Path) -> None:
    with gzip.open(path, "wb") as stream:
        stream.write(entry("pax", tarfile.XHDTYPE, size=4 << 30).tobuf())
        stream.write(bytes(1 << 20))


@pytest.mark.parametrize(
    ("name", "make", "why"),
    [
        ("x.zip", zip_of_a_link, "is a link or a device"),
        *(
            (
                "x.tar",
                lambda path, kind=kind: tarred(path, (entry("a", kind, linkname="/etc/x"), b"")),
                "is a link or a device",
            )
            for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE)
        ),
        ("x.zip", lambda path: changed(zipped(path, {"a": LOG}), 8, 1, "B"), "is encrypted"),
        ("x.zip", bomb, "unpacks to more than 67108864 bytes"),
        ("x.tar.gz", bomb, "unpacks to more than 67108864 bytes"),
        ("x.zip", long_directory, "is no whole archive"),
        ("x.tar.gz", many_members, f"has more than {MOST_MEMBERS} members"),
        ("x.tar.gz", long_header, "is no whole archive"),
        ("x.tar", lambda path: tarred(path, *[(entry("a"), LOG)] * 2), "appears twice"),
    ],
)
def test_hostile_archives_are_refused_before_a_member_is_read(tmp_path, name, make, why):
    make(tmp_path / name)
    assert why in why_refused(tmp_path / name)


@pytest.mark.parametrize("size", [-1, 1, 1000])
def test_wrong_sizes_are_a_refusal_of_the_log(tmp_path, size):
    path = changed(zipped(tmp_path / "x.zip", {"x.log": LOG}), 24, len(LOG) + size)
    [one] = measured(path)
    assert (one.status, one.throughput) == ("refused", None)
    assert "damaged in the archive" in one.reason


@pytest.mark.parametrize("suffix", PACKS)
def test_what_is_no_archive_is_one_line(tmp_path, suffix):
    path = tmp_path / f"x.{suffix}"
    for content in (b"", b"hello", os.urandom(4096), b"PK\x05\x06" + bytes(18)):
        path.write_bytes(content)
        [one] = measured(path)
        assert one.status == "refused"
        assert "\n" not in one.reason


@pytest.fixture(scope="module")
def good_archives(tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("archives")
    return {suffix: packed(folder, suffix, {"a/x.log": LOG, "run.json": b"{}"}) for suffix in PACKS}


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_damage_crashes_or_changes_a_number(tmp_path_factory, good_archives, data):
    suffix = data.draw(st.sampled_from(sorted(good_archives)))
    content = bytearray(good_archives[suffix])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content))) or None]
    path = tmp_path_factory.mktemp("damaged") / f"x.{suffix}"
    path.write_bytes(content)
    for speed in speeds(path):
        # Nothing guards the contents of a plain tar file.
        assert suffix == "tar" or speed in (None, SPEED)
