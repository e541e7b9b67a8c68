"""Archives of any contents: bytes that depend on these alone, and no fault that goes unseen."""

import hashlib
import os
import stat
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reperf.archive.container import Member, unpack, verified, write
from reperf.errors import ReperfError
from reperf.member_names import MANIFEST

from tests.helpers.refusal import refused_in_one_line
from tests.unit.archive.suites import archive, contents_of

PARTS = st.text("abcXYZ019-+._: äß", min_size=1, max_size=6).filter(lambda part: part.strip("."))
NAMES = st.lists(PARTS, min_size=1, max_size=3).map("/".join).filter(lambda name: name[1:2] != ":")
ANY_NAMES = st.text(st.characters() | st.sampled_from("./\\:\n\0\u2028\udcff"), max_size=300)
LONG = ("a" * 231, "a/" * 1001 + "b")
CONTENTS = st.dictionaries(NAMES, st.binary(max_size=300), max_size=6).filter(
    lambda files: MANIFEST not in files
)


def fault_of(path: Path) -> str:
    """The one line with which an archive is refused."""
    with refused_in_one_line(f"{path}: ") as refusal, verified(path):
        pass
    return str(refusal.value)


@given(contents=CONTENTS, shuffled=st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_contents_are_read_back_and_bytes_do_not_depend_on_order_times_or_modes(
    tmp_path_factory, contents, shuffled
):
    folder = tmp_path_factory.mktemp("archive")
    first = archive(folder / "first.zip", contents)
    assert contents_of(first) == contents

    names, members = list(contents), []
    shuffled.shuffle(names)
    for place, name in enumerate(names):
        file = folder / f"file{place}"
        file.write_bytes(contents[name])
        file.chmod(0o600 | shuffled.choice((0, 0o177)))
        os.utime(file, (shuffled.randrange(2**31), shuffled.randrange(2**31)))
        members.append(Member.of_file(name, file))
    former = os.umask(shuffled.choice((0, 0o077)))
    try:
        write(folder / "second.zip", members)
    finally:
        os.umask(former)
    assert (folder / "second.zip").read_bytes() == first.read_bytes()


@given(names=st.lists(ANY_NAMES, max_size=3))
@settings(max_examples=200)
def test_nothing_is_written_that_would_not_be_verified(tmp_path_factory, names):
    path = tmp_path_factory.mktemp("archive") / "a.zip"
    try:
        write(path, [Member.of_bytes(name, b"log") for name in names])
    except ReperfError as refusal:
        assert str(refusal).startswith(f"{path}: ")
        assert len(str(refusal).splitlines()) == 1
        assert not list(path.parent.iterdir())
        return
    with verified(path) as opened:
        assert {*opened.namelist()} == {*names, MANIFEST}
        for name in names:
            unpack(opened, name, path.parent / "unpacked")


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        (["a\\b.log"], "leaves the archive or cannot be a name; allowed: printed names"),
        *(([name], "is too long a name for an archive; allowed: printed names") for name in LONG),
        *(
            (names, "appears twice; allowed: each member once")
            for names in (["a", "a"], [MANIFEST])
        ),
    ],
)
def test_names_that_cannot_stand_in_an_archive_are_not_written(tmp_path, names, fault):
    path = tmp_path / "a.zip"
    with refused_in_one_line(f"{path}: {repr(names[0][:300])[:-1]}") as refusal:
        write(path, [Member.of_bytes(name, b"log") for name in names])
    assert fault in str(refusal.value)
    assert not list(tmp_path.iterdir())


def test_the_manifest_is_what_sha256sum_reads(tmp_path):
    with verified(archive(tmp_path / "a.zip", {"b/c": b"two", "a": b"one"})) as opened:
        lines = opened.read(MANIFEST).decode().splitlines()
    digests = {"a": hashlib.sha256(b"one"), "b/c": hashlib.sha256(b"two")}
    assert lines == [f"{digest.hexdigest()}  {name}" for name, digest in digests.items()]


def test_a_byte_that_is_changed_put_in_or_cut_off_is_found_wherever_it_is(tmp_path):
    path = archive(tmp_path / "a.zip", {"log/a": b"speed 12", "log/b": b""})
    whole = path.read_bytes()
    for place, byte in enumerate(whole):
        before, after = whole[:place], whole[place:]
        changed = bytes([byte ^ (1 << place % 8)]) + after[1:]
        for end in (changed, b"\0" + after, after[1:], b""):
            path.write_bytes(before + end)
            fault_of(path)
    path.write_bytes(whole + b"\0")
    fault_of(path)


def forged(path: Path, *members: tuple[zipfile.ZipInfo | str, bytes], listed: str = "") -> None:
    """A zip file as others would make it, with a manifest that fits, or one of some names."""
    with zipfile.ZipFile(path, "w") as target:
        lines = ""
        for member, content in members:
            target.writestr(member, content)
            name = member if isinstance(member, str) else member.filename
            if not listed or name in listed:
                lines += f"{hashlib.sha256(content).hexdigest()}  {name}\n"
        target.writestr(MANIFEST, lines)


def entry(mode: int = stat.S_IFREG, **fields: object) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("log")
    info.external_attr = (mode | 0o777) << 16
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def edited(path: Path, place: int, new: bytes) -> None:
    """An archive with other bytes at a place of its directory's first entry."""
    content = bytearray(archive(path, {"log": b"short"}).read_bytes())
    at = content.index(b"PK\x01\x02") + place
    content[at : at + len(new)] = new
    path.write_bytes(content)


def twice(path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        forged(path, ("log", b"one"), ("log", b"two"))


def listing(path: Path, line: str) -> None:
    """A zip file with nothing but a manifest, of one line."""
    with zipfile.ZipFile(path, "w") as target:
        target.writestr(MANIFEST, line)


OUTSIDE = ("../up", "a/../../up", "/absolute", "./here", "a//b", "a\\..\\up", "C:up")
OUTSIDE += ("new\nline", "folder/")


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda path: None, "No such file"),
        (Path.mkdir, "directory"),
        (Path.touch, "is no whole archive"),
        (lambda path: path.write_text("no archive\n" * 100), "is no whole archive"),
        (lambda path: zipfile.ZipFile(path, "w").close(), f"{MANIFEST!r} is missing"),
        *(
            (lambda path, name=name: forged(path, (name, b"")), f"{name!r} leaves the archive")
            for name in OUTSIDE
        ),
        (lambda path: forged(path, (entry(stat.S_IFLNK), b"/etc/passwd")), "no plain files"),
        (twice, "'log' appears twice"),
        (
            lambda path: forged(path, (entry(compress_type=zipfile.ZIP_DEFLATED), bytes(10**7))),
            "its members claim 10000",
        ),
        (lambda path: edited(path, 8, b"\1"), "is encrypted, password required"),
        (lambda path: edited(path, 20, (2**31).to_bytes(4, "little") * 2), "claim 2147483"),
        (lambda path: forged(path, ("a", b"1"), ("b", b"2"), listed="a"), "'b' was added"),
        (lambda path: listing(path, f"{'0' * 64}  b.log\n"), "'b.log' is missing"),
        (lambda path: listing(path, "no digest here\n"), "line 1: 'no digest here'"),
        # Times, order and bytes between members tell nothing, so nobody may hide anything there.
        (lambda path: forged(path, ("b.log", b"2"), ("a.log", b"1")), "beside its members"),
    ],
)
def test_a_hostile_archive_is_refused_in_one_line_before_a_byte_of_it_is_written(
    tmp_path, make, fault
):
    make(tmp_path / "a.zip")
    assert fault in fault_of(tmp_path / "a.zip")
