"""The upper rows of a JPEG, for decoders that have no other way to leave out the rest."""

SEQUENTIAL = (0xC0, 0xC1)
"""Frames that hold the rows of an image one after another, from the top: not progressive ones."""
SCAN, END = 0xDA, b"\xff\xd9"


def upper_rows(jpeg, height, wanted):
    """A JPEG of some height that says it has no more than the wanted rows, and how many it has.

    A decoder then stops there. It may find fault with the remaining data, so it must not be strict.
    They are checked here instead: ValueError if they are not whole. Colours are
    stored for two rows at once and interpolated: the last two rows may be a little different.
    """
    at = None if wanted >= height else _height_at(jpeg)
    if at is None:
        return jpeg, height
    shorter = bytearray(jpeg)
    # Only a marker looks like this there.
    if shorter.rfind(END, at) < 0:
        raise ValueError("ends too early")
    shorter[at : at + 2] = wanted.to_bytes(2, "big")
    return shorter, wanted


def _height_at(jpeg):
    """Where the height is, two bytes; None in a JPEG that cannot end early, or is an odd one."""
    at = 2
    while at + 9 < len(jpeg) and jpeg[at] == 0xFF and jpeg[at + 1] != SCAN:
        if jpeg[at + 1] in SEQUENTIAL:
            return at + 5  # after the marker, the segment's length and the bits of a sample
        at += 2 + (jpeg[at + 2] << 8 | jpeg[at + 3])
    return None
