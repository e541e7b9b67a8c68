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
from tests.unit.logs.asking import REAL

LOG = (REAL / "oneflow_resnet50_2n8g_b128_fp32.log").read_bytes()
SPEED = 5915.65
NAME = "2n8g/r50_b128_fp32_1.log"
PACKS = ["zip", "tar", "tar.gz"]


def packed(path: Path, *members: tuple[str | zipfile.ZipInfo | tarfile.TarInfo, bytes]) -> Path:
    """An archive of members, of the kind that its name says."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as target:
            for info, content in members:
                named = zipfile.ZipInfo(info) if isinstance(info, str) else info
                target.writestr(named, content, zipfile.ZIP_DEFLATED)
    else:
        with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as target:
            for info, content in members:
                told = entry(info) if isinstance(info, str) else info
                told.size = told.size or len(content)
                target.addfile(told, io.BytesIO(content))
    return path


def entry(name: str, kind: bytes = tarfile.REGTYPE, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def changed(path: Path, offset: int, value: int, form: str = "<I") -> Path:
    """A zip file with another number at a place of its directory's last entry."""
    content = bytearray(path.read_bytes())
    struct.pack_into(form, content, content.rindex(b"PK\x01\x02") + offset, value)
    path.write_bytes(content)
    return path


def measured(path: Path) -> list:
    return [one.measured for one in measure_paths([path], MeasureRequest(Method()))]


def speeds(path: Path) -> list[float | None]:
    return [one.throughput and round(one.throughput, 2) for one in measured(path)]


@pytest.mark.parametrize("suffix", [*PACKS, "tgz"])
def test_logs_in_an_archive_are_measured_compressed_or_not(tmp_path, suffix):
    members = ("./a/x.log", LOG), ("a/x.log.gz", gzip.compress(LOG)), (f"b/{NAME}", LOG)
    path = packed(tmp_path / f"logs.{suffix}", *members, ("a.png", b""))
    assert speeds(path) == [SPEED] * 3
    assert measured(path)[2].log == f"{path}/b/{NAME}"


def test_an_archive_in_an_archive_is_not_read_and_named(tmp_path):
    inner = packed(tmp_path / "a.tar.gz", (NAME, LOG)).read_bytes()
    path = tmp_path / "x.zip"
    found = measured(packed(path, ("a.tar.gz", inner), ("._b.zip", b"no zip"), ("d.log", LOG)))
    assert [(one.log, one.reason) for one in found] == [
        (f"{path}/a.tar.gz", NESTED),
        (f"{path}/d.log", ""),
    ]


def link(path: Path) -> None:
    info = zipfile.ZipInfo("x.log")
    info.external_attr = 0o120777 << 16
    packed(path, (info, b"/etc/passwd"))


def encrypted(path: Path) -> None:
    changed(packed(path, ("a", LOG)), 8, 1, "B")


def bomb(path: Path) -> None:
    if path.suffix == ".zip":
        packed(path, ("x.log", bytes(70 << 20)))
        return
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(entry("x.log", size=70 << 20).tobuf())
        for _ in range(70):
            stream.write(bytes(1 << 20))


def long_directory(path: Path) -> None:
    """It claims a million members, which nobody lists."""
    content = packed(path, ("a.log", LOG)).read_bytes()
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


LINKS = [
    entry("a", kind, linkname="/etc/x")
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE)
]
OUTSIDE = [(f"x.{kind}", name) for kind in ("zip", "tar") for name in ("../x.log", "/etc/x.log")]


@pytest.mark.parametrize(
    ("name", "make", "why"),
    [
        *((name, [(one, LOG)], "leaves the archive or cannot be a name") for name, one in OUTSIDE),
        ("x.zip", link, "is a link or a device"),
        *(("x.tar", [(one, b"")], "is a link or a device") for one in LINKS),
        ("x.zip", encrypted, "is encrypted"),
        ("x.zip", bomb, "unpacks to more than 67108864 bytes"),
        ("x.tar.gz", bomb, "unpacks to more than 67108864 bytes"),
        ("x.zip", long_directory, "is no whole archive"),
        ("x.tar.gz", many_members, f"has more than {MOST_MEMBERS} members"),
        ("x.tar.gz", long_header, "is no whole archive"),
        ("x.tar", [("a", LOG), ("a", LOG)], "appears twice"),
    ],
)
def test_hostile_archives_are_refused_before_a_member_is_read(tmp_path, name, make, why):
    path = tmp_path / name
    if callable(make):
        make(path)
    else:
        packed(path, *make)
    with refused_in_one_line(f"{path}: ") as refusal, open_archive(path):
        pass
    assert why in str(refusal.value)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("size", [-1, 1, 1000])
def test_wrong_sizes_are_a_refusal_of_the_log(tmp_path, size):
    path = changed(packed(tmp_path / "x.zip", ("x.log", LOG)), 24, len(LOG) + size)
    [one] = measured(path)
    assert (one.status, one.throughput) == ("refused", None)
    assert "damaged in the archive" in one.reason


@pytest.mark.parametrize("suffix", PACKS)
@pytest.mark.parametrize(
    "content", [b"", b"hello", os.urandom(4096), b"PK\x05\x06" + bytes(18)], ids=len
)
def test_what_is_no_archive_is_one_line(tmp_path, suffix, content):
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(content)
    [one] = measured(path)
    assert one.status == "refused"
    assert "\n" not in one.reason


@pytest.mark.parametrize("suffix", PACKS)
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_damage_crashes_or_changes_a_number(tmp_path_factory, suffix, data):
    path = tmp_path_factory.mktemp("damaged") / f"x.{suffix}"
    content = bytearray(packed(path, ("a/x.log", LOG), ("run.json", b"{}")).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content))) or None])
    for speed in speeds(path):
        # Nothing guards the contents of a plain tar file.
        assert suffix == "tar" or speed in (None, SPEED)
