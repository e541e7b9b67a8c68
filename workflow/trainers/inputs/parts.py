"""The parts in which a converted data set lies, dealt out to ranks."""

from pathlib import Path

from trainers.contract.steplog import Refused


def even_parts(folder, world_size):
    """The parts of a data set, in order, if every rank can have equally many of them.

    Raises:
        Refused: the folder holds none, or they cannot be shared evenly.
    """
    parts = sorted(path for path in Path(folder).glob("part-*") if not path.suffix)
    if not parts or len(parts) % world_size:
        raise Refused(
            f"{folder}: {len(parts)} parts for {world_size} ranks; allowed: a multiple of them"
        )
    return parts
