"""For which GPU architectures a library holds code, read from its fat binaries.

nvcc puts a fat binary into a library for each file that it compiles: one image of its kernels for
each architecture. Images are compressed, but their heads are not. NVIDIA does not document the
layout; what is read here was compared with what its `fatbinary` writes and `cuobjdump` lists, for
CUDA 11.2 to 13.2.
"""

import struct
from collections import Counter

from trainers.contract.architecture import order
from trainers.contract.elf import opened

# Relocatable code (nvcc -rdc) that is linked on the device lies in the second.
_SECTIONS = (".nv_fatbin", "__nv_relfatbin")
_MAGIC = 0xBA55ED50
_FAT_BINARY = struct.Struct("<IHHQ")  # magic, version, size of this head, size of what follows
_IMAGE = struct.Struct(
    "<HHIQ12xI8xQ"
)  # kind, version, size of this head, size, architecture, flags
_KINDS = {1: "compute", 2: "sm"}  # PTX, which the driver compiles, and machine code
_SUFFIXES = {0x100000: "a", 0x200000: "f"}  # flags: for this one alone, for this family alone


def architectures(*libraries):
    """The architectures for which most of the libraries' fat binaries hold an image.

    Some files are compiled for further architectures, or for fewer: kernels that a library picks
    where the device has them, and that do not decide whether it runs at all.

    Args:
        libraries: paths of shared libraries; those without code for GPUs do not count.

    Returns:
        Names such as sm_90 (machine code), sm_90a (machine code for that one alone) and compute_90
        (PTX, which a driver compiles for that one and all later ones), in their order.

    Raises:
        Unreadable: a file is no library, or its fat binaries are cut or of another layout.
    """
    fat_binaries = [names for path in libraries for names in fat_binaries_of(path) if names]
    counts = Counter(name for names in fat_binaries for name in names)
    return sorted((name for name, n in counts.items() if 2 * n > len(fat_binaries)), key=order)


def fat_binaries_of(library):
    """What each fat binary of a library holds: a list of sets of architectures.

    Raises:
        Unreadable: the file is no library, or its fat binaries are cut or of another layout.
    """
    with opened(library) as (content, sections):
        return [
            names
            for name in _SECTIONS
            if name in sections
            for names in _fat_binaries(content, *sections[name])
        ]


def _fat_binaries(content, place, size):
    end = place + size
    while place + _FAT_BINARY.size <= end:
        magic, _, head, following = _FAT_BINARY.unpack_from(content, place)
        if magic == 0:  # between two of them, for the next to begin at a multiple of 8
            place += 8
            continue
        if magic != _MAGIC or place + head + following > end:
            raise ValueError(f"no whole fat binary at byte {place}")
        yield set(_images(content, place + head, place + head + following))
        place += head + following


def _images(content, place, end):
    while place < end:
        kind, _, head, size, architecture, flags = _IMAGE.unpack_from(content, place)
        if not head or place + head + size > end:
            raise ValueError(f"no whole image at byte {place}")
        if kind in _KINDS:
            suffix = "".join(letter for flag, letter in _SUFFIXES.items() if flags & flag)
            yield f"{_KINDS[kind]}_{architecture}{suffix}"
        place += head + size
