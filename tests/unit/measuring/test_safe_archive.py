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
from reperf.measuring import safe_archive
from reperf.measuring.answer import Question
from reperf.measuring.found_logs import answers
from reperf.measuring.measure import Method
from reperf.measuring.safe_archive import DEEPEST, MOST_MEMBERS, open_archive

from tests.helpers.refusal import refused_in_one_line

LOG = (Path(__file__).parents[2] / "data/logs/oneflow_resnet50_2n8g_b128_fp32.log").read_bytes()


def zipped(path: Path, members: dict[str, bytes], **how: object) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, **how) as archive:
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


def why_refused(path: Path) -> str:
    with refused_in_one_line(f"{path}: ") as refusal, open_archive(path):
        pass
    return str(refusal.value)


def measured(path: Path) -> list:
    return [one.measured for one in answers([path], Question(Method()))]


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "tgz"])
def test_logs_in_a_tar_file_are_measured(tmp_path, suffix):
    path = tarred(tmp_path / f"logs.{suffix}", (entry("./a/x.log"), LOG), (entry("b/y.log"), LOG))
    first, second = measured(path)
    assert (round(first.throughput, 2), round(second.throughput, 2)) == (5915.65, 5915.65)
    assert second.log == f"{path}/b/y.log"


def test_logs_in_a_zip_file_are_measured(tmp_path):
    [one] = measured(zipped(tmp_path / "logs.zip", {"2n8g/r50_b128_fp32_1.log": LOG, "a.png": b""}))
    assert round(one.throughput, 2) == 5915.65


PACKS = ["zip", "tar", "tar.gz"]


def packed(folder: Path, suffix: str, members: dict[str, bytes]) -> bytes:
    path = folder / f"packed.{suffix}"
    if suffix == "zip":
        return zipped(path, members).read_bytes()
    return tarred(path, *((entry(name), content) for name, content in members.items())).read_bytes()


@pytest.mark.parametrize("outer", PACKS)
@pytest.mark.parametrize("inner", PACKS)
def test_archives_in_an_archive_are_measured(tmp_path, outer, inner):
    first = packed(tmp_path, inner, {"2n8g/r50_b128_fp32_1.log": LOG, "README": b"hello"})
    second = packed(tmp_path, "zip", {f"again.{inner}": first})
    empty = packed(tmp_path, "zip", {"README": b"hello"})
    members = {f"a/10.{inner}": first, f"a/9.{inner}": first, "b.zip": second, "c.zip": empty}
    path = tmp_path / f"x.{outer}"
    path.write_bytes(packed(tmp_path, outer, members | {"._b.zip": b"no zip", "d.log": LOG}))
    found = measured(path)
    log = "2n8g/r50_b128_fp32_1.log"
    assert [one.log.removeprefix(f"{path}/") for one in found] == [
        f"a/9.{inner}/{log}",
        f"a/10.{inner}/{log}",
        f"b.zip/again.{inner}/{log}",
        "d.log",
    ]
    assert {round(one.throughput, 2) for one in found} == {5915.65}


@pytest.mark.parametrize("inner", PACKS)
def test_a_hostile_archive_in_an_archive_is_refused_alone(tmp_path, inner):
    whole = packed(tmp_path, inner, {"x.log": LOG})
    hostile = {
        "names": packed(tmp_path, inner, {"../x.log": LOG}),
        "whole": whole[: min(len(whole) // 2, 700)],
        "nothing": b"",
    }
    members = {f"{name}.{inner}": content for name, content in hostile.items()}
    path = zipped(tmp_path / "x.zip", members | {"y.log": LOG})
    *refused, one = measured(path)
    assert (one.log, round(one.throughput, 2)) == (f"{path}/y.log", 5915.65)
    assert {one.status for one in refused} == {"refused"}
    assert all("\n" not in one.reason for one in refused)
    assert "leaves the archive" in refused[0].reason


def test_archives_in_archives_are_refused_where_they_are_too_deep(tmp_path):
    content = packed(tmp_path, "zip", {"x.log": LOG})
    for _ in range(DEEPEST):
        content = packed(tmp_path, "zip", {"x.zip": content})
    [one] = measured(zipped(tmp_path / "y.zip", {"log.txt": b"", "x.zip": content}))
    assert f"lies in {DEEPEST + 1} archives; allowed: up to {DEEPEST}" in one.reason
    [one] = measured(tmp_path / "packed.zip")
    assert round(one.throughput, 2) == 5915.65


@pytest.mark.parametrize("inner", ["zip", "tar.gz"])
def test_bombs_in_an_archive_share_its_allowance(tmp_path, monkeypatch, inner):
    monkeypatch.setattr(safe_archive, "FREE_GROWTH", 1 << 20)
    bomb = packed(tmp_path, inner, {"x.log": bytes(700_000)})
    path = zipped(tmp_path / "x.zip", {f"{n}.{inner}": bomb for n in range(3)})
    found = measured(path)
    assert ["unpacks to more than" in one.reason for one in found] == [False, True, True]


def test_the_members_of_all_archives_in_one_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(safe_archive, "MOST_MEMBERS", 9)
    many = packed(tmp_path, "zip", {f"{n}.log": LOG for n in range(5)})
    *some, refused = measured(zipped(tmp_path / "x.zip", {"a.zip": many, "b.zip": many}))
    assert [round(one.throughput, 2) for one in some] == [5915.65] * 5
    assert "members, those of archives around it included" in refused.reason


def test_an_archive_in_an_archive_that_fills_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(safe_archive, "LARGEST_INSIDE", 100)
    inner = packed(tmp_path, "zip", {"x.log": LOG})
    [one] = measured(zipped(tmp_path / "x.zip", {"a.zip": inner}))
    assert one.reason.endswith(f"has {len(inner)} bytes; allowed in another archive: up to 100")


NAMES = [
    "../x.log",
    "a/../../x.log",
    "/etc/x.log",
    "C:/x.log",
    "a\\..\\x.log",
    "a//x.log",
    "a\nb.log",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_leave_the_archive_are_refused(tmp_path, name):
    expected = "leaves the archive or cannot be a name"
    assert expected in why_refused(zipped(tmp_path / "x.zip", {name: LOG}))
    assert expected in why_refused(tarred(tmp_path / "x.tar", (entry(name), LOG)))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.tar", "x.zip"]


def test_links_and_devices_are_refused(tmp_path):
    info = zipfile.ZipInfo("x.log")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    assert "is a link or a device" in why_refused(tmp_path / "x.zip")
    kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE)
    for number, kind in enumerate(kinds):
        path = tarred(tmp_path / f"{number}.tar", (entry("x.log", kind, linkname="/etc/x"), b""))
        assert "is a link or a device" in why_refused(path)


def test_encrypted_members_are_refused(tmp_path):
    content = bytearray(zipped(tmp_path / "x.zip", {"x.log": LOG}).read_bytes())
    directory = content.rindex(b"PK\x01\x02")
    content[directory + 8] |= 1
    content[6] |= 1
    (tmp_path / "x.zip").write_bytes(content)
    assert "is encrypted" in why_refused(tmp_path / "x.zip")


def test_a_bomb_is_refused(tmp_path):
    zeros = bytes(1 << 20)
    zipped(tmp_path / "x.zip", {"x.log": zeros * 70})
    assert "unpacks to more than 200 times its size" in why_refused(tmp_path / "x.zip")
    with gzip.open(tmp_path / "x.tar.gz", "wb", compresslevel=1) as stream:
        header = entry("x.log", size=70 << 20).tobuf()
        stream.write(header)
        for _ in range(70):
            stream.write(zeros)
    assert "unpacks to more than 200 times its size" in why_refused(tmp_path / "x.tar.gz")


def test_members_that_share_their_bytes_are_refused(tmp_path):
    path = zipped(tmp_path / "x.zip", {"a.log": LOG * 100, "b.log": LOG * 100})
    content = bytearray(path.read_bytes())
    second = content.rindex(b"PK\x01\x02")
    struct.pack_into("<I", content, second + 42, 0)
    path.write_bytes(content)
    assert "its members overlap" in why_refused(path)


def test_too_many_members_are_refused_before_they_are_listed(tmp_path):
    content = bytearray(zipped(tmp_path / "x.zip", {"a.log": LOG}).read_bytes())
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, len(content) - 22, 1)
    end64 = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 10**6, 10**6, 60, 0)
    end = bytearray(content[-22:])
    struct.pack_into("<HHII", end, 8, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
    (tmp_path / "x.zip").write_bytes(content[:-22] + end64 + locator + end)
    assert f"has more than {MOST_MEMBERS} members" in why_refused(tmp_path / "x.zip")


def test_real_members_are_counted_too(tmp_path):
    block = entry("x.log").tobuf()
    with gzip.open(tmp_path / "x.tar.gz", "wb", compresslevel=1) as stream:
        for _ in range(MOST_MEMBERS // 1000 + 1):
            stream.write(block * 1000)
    assert f"has more than {MOST_MEMBERS} members" in why_refused(tmp_path / "x.tar.gz")


def test_a_header_that_asks_for_gigabytes_is_refused(tmp_path):
    with gzip.open(tmp_path / "x.tar.gz", "wb") as stream:
        stream.write(entry("pax", tarfile.XHDTYPE, size=4 << 30).tobuf())
        stream.write(bytes(1 << 20))
    assert "has a header of" in why_refused(tmp_path / "x.tar.gz")


def test_a_name_that_is_there_twice_is_refused(tmp_path):
    path = tarred(tmp_path / "x.tar", (entry("x.log"), LOG), (entry("x.log"), LOG))
    assert "appears twice" in why_refused(path)


def test_wrong_sizes_are_a_refusal_of_the_log(tmp_path):
    for change in (-1, 1, 1000):
        path = zipped(tmp_path / "x.zip", {"x.log": LOG})
        content = bytearray(path.read_bytes())
        directory = content.rindex(b"PK\x01\x02")
        struct.pack_into("<I", content, directory + 24, len(LOG) + change)
        path.write_bytes(content)
        [one] = measured(path)
        assert (one.status, one.throughput) == ("refused", None)
        assert "damaged in the archive" in one.reason


def test_a_changed_byte_is_a_refusal_of_the_log(tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.log", LOG)
    path.write_bytes(path.read_bytes().replace(b"33942.98", b"33941.98"))
    [one] = measured(path)
    assert "damaged in the archive: Bad CRC-32" in one.reason


@pytest.mark.parametrize("suffix", ["zip", "tar", "tar.gz"])
def test_what_is_no_archive_is_one_line(tmp_path, suffix):
    for content in (b"", b"hello", os.urandom(4096), b"PK\x05\x06" + bytes(18)):
        path = tmp_path / f"x.{suffix}"
        path.write_bytes(content)
        for one in measured(path):
            assert one.status == "refused"
            assert "\n" not in one.reason


@pytest.fixture(scope="module")
def good_archives(tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("archives")
    return {
        "zip": zipped(folder / "x.zip", {"a/x.log": LOG, "run.json": b"{}"}).read_bytes(),
        "tar": tarred(folder / "x.tar", (entry("x.log"), LOG)).read_bytes(),
        "tar.gz": tarred(folder / "x.tar.gz", (entry("x.log"), LOG)).read_bytes(),
    }


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
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
    for one in measured(path):
        if suffix == "tar":  # nothing guards the contents of a plain tar file
            continue
        assert one.throughput is None or round(one.throughput, 2) == 5915.65
