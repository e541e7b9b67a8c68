"""The upper rows of a JPEG, for decoders that have no other way to leave out the rest."""

SEQUENTIAL = (0xC0, 0xC1)
"""Frames that hold the rows of an image one after another, from the top: not progressive ones."""
SCAN, END = 0xDA, b"\xff\xd9"


def upper_rows(jpeg, height, wanted):
    """A JPEG that says it is no higher than what is wanted of it, where that is possible.

    A decoder then stops there. It may find fault with the data that are left, so it must not be
    strict about them; that they are whole is checked here.

    Args:
        jpeg: an image's bytes.
        height: how many rows it has.
        wanted: how many of them are needed, from the top. Colours are stored for two rows at once
            and interpolated, so the last two of them may come out a little different.

    Returns:
        The bytes, and how many rows they have.

    Raises:
        ValueError: the image ends too early.
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
