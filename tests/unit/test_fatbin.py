"""For which GPUs a library holds code: read from bytes made by hand, whose layout is NVIDIA's."""

import struct
from pathlib import Path

import pytest
from trainers.contract.elf import Unreadable, needed
from trainers.contract.fatbin import architectures, fat_binaries_of

PTX, CUBIN, OTHER = 1, 2, 8
ALONE, FAMILY, COMPRESSED = 0x100000, 0x200000, 0x8011


def image(kind: int, architecture: int, flags: int = COMPRESSED, head: int = 64) -> bytes:
    """The image of some kernels; heads grew with CUDA's versions."""
    code = b"\xba" * 24
    start = struct.pack("<HHIQ", kind, 0x101, head, len(code))
    return (start + struct.pack("<IIHHIIIQ", 0, 0, 8, 1, architecture, 0, 0, flags)).ljust(
        head, b"\0"
    ) + code


def fat_binary(*images: bytes) -> bytes:
    content = b"".join(images)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(content)) + content


def library(path: Path, **sections: bytes) -> Path:
    """A shared library with some sections."""
    names = b"\0" + b"".join(f".{name}\0".encode() for name in [*sections, "shstrtab"])
    placed, headers, content = [*sections.items(), ("shstrtab", names)], [bytes(64)], b""
    for name, section in placed:
        start = names.index(f".{name}\0".encode())
        place = (start, 1, 0, 0, 64 + len(content), len(section), 0, 0, 0, 0)
        headers.append(struct.pack("<IIQQQQIIQQ", *place))
        content += section
    head = b"\x7fELF\x02\x01".ljust(40, b"\0") + struct.pack("<Q", 64 + len(content))
    head += bytes(10) + struct.pack("<HHH", 64, len(headers), len(headers) - 1)
    path.write_bytes(head + content + b"".join(headers))
    return path


def test_machine_code_and_ptx_have_names_of_their_own(tmp_path):
    code = fat_binary(image(CUBIN, 90), image(CUBIN, 100, head=112), image(PTX, 90, head=80))
    path = library(tmp_path / "lib.so", nv_fatbin=code)
    assert architectures(path) == ["sm_90", "sm_100", "compute_90"]


def test_code_for_one_architecture_alone_or_for_its_family_is_told_from_the_rest(tmp_path):
    images = [image(CUBIN, 90, COMPRESSED | ALONE), image(CUBIN, 103, COMPRESSED | FAMILY)]
    code = fat_binary(*images, image(PTX, 120, COMPRESSED | FAMILY))
    path = library(tmp_path / "lib.so", nv_fatbin=code)
    assert architectures(path) == ["sm_90a", "sm_103f", "compute_120f"]


def test_what_only_a_few_kernels_are_compiled_for_does_not_count(tmp_path):
    usual, more = [image(CUBIN, 80), image(CUBIN, 90)], image(CUBIN, 90, COMPRESSED | ALONE)
    code = fat_binary(*usual) * 2 + fat_binary(*usual, more)
    path = library(tmp_path / "lib.so", nv_fatbin=code)
    assert architectures(path) == ["sm_80", "sm_90"]
    assert len(fat_binaries_of(path)) == 3


def test_several_libraries_and_the_gaps_between_fat_binaries_are_read(tmp_path):
    one = library(tmp_path / "1.so", nv_fatbin=fat_binary(image(CUBIN, 70)) + bytes(8))
    gap = fat_binary(image(CUBIN, 70)) + bytes(24) + fat_binary(image(CUBIN, 70), image(PTX, 70))
    two = library(tmp_path / "2.so", nv_fatbin=gap)
    assert architectures(one, two) == ["sm_70"]
    assert architectures(two) == ["sm_70"]
    assert len(fat_binaries_of(two)) == 2


def test_an_image_that_is_neither_code_nor_ptx_is_passed_over(tmp_path):
    path = library(tmp_path / "lib.so", nv_fatbin=fat_binary(image(OTHER, 90), image(CUBIN, 80)))
    assert architectures(path) == ["sm_80"]


def test_a_library_without_code_for_gpus_has_no_architectures(tmp_path):
    assert architectures(library(tmp_path / "lib.so", text=b"code")) == []
    assert architectures() == []


def test_the_libraries_that_one_needs_are_named(tmp_path):
    names = b"\0libcudart.so.11.0\0libc.so.6\0"
    entries = ((1, 1), (14, 0), (1, 19), (0, 0))
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in entries)
    path = library(tmp_path / "lib.so", dynamic=dynamic, dynstr=names)
    assert needed(path) == ["libcudart.so.11.0", "libc.so.6"]
    assert needed(library(tmp_path / "static.so", text=b"code")) == []


@pytest.mark.parametrize("content", [b"", b"not a library", b"\x7fELF\x01\x01" + bytes(80)])
def test_what_is_no_library_is_named(content, tmp_path):
    path = tmp_path / "lib.so"
    path.write_bytes(content)
    with pytest.raises(Unreadable, match=r"lib\.so: no 64-bit ELF file, or cut"):
        architectures(path)


@pytest.mark.parametrize(
    "code",
    [
        b"GPU code of another kind",
        fat_binary(image(CUBIN, 90))[:-8],
        fat_binary(bytes(88)),
        fat_binary(image(CUBIN, 90)[:20]),
    ],
    ids=["other", "cut", "no image", "cut image"],
)
def test_a_layout_that_we_do_not_know_is_no_list_of_architectures(code, tmp_path):
    path = library(tmp_path / "lib.so", nv_fatbin=code)
    with pytest.raises(Unreadable, match=r"lib\.so: "):
        architectures(path)


def test_a_library_that_is_cut_is_no_list_of_architectures(tmp_path):
    path = library(tmp_path / "lib.so", nv_fatbin=fat_binary(image(CUBIN, 90)))
    whole = path.read_bytes()
    for size in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:size])
        with pytest.raises(Unreadable):
            architectures(path)
