"""Convert a folder of images to record parts: the one call behind the rule."""

from pathlib import Path

from reperf.data.bar import progress
from reperf.data.images.formats import FORMATS
from reperf.data.images.image import read_image
from reperf.data.images.listing import Listing
from reperf.data.images.manifest import ImageManifest
from reperf.data.parallel import Tick, run_parts
from reperf.data.part import Written, all_or_nothing, new_part
from reperf.errors import ReperfError


def convert(
    images: Path, output: Path, format_name: str, *, parts: int, workers: int, seed: int
) -> ImageManifest:
    """Convert images to records: part-00000 and so on, the files beside them, manifest.json.

    Images are shuffled by the seed and dealt out evenly. The bytes depend on the images, the seed
    and the number of parts, not on the number of workers. What an earlier conversion left in the
    folder is removed.

    Raises:
        ReperfError: an image or a name cannot be converted, there are fewer images than parts, or
            a file cannot be written.
    """
    listing = Listing(images)
    if parts > len(listing):
        raise ReperfError(
            f"{listing.folder}: {len(listing)} images for {parts} parts; "
            "allowed: at least one image per part"
        )
    order, record_format = listing.shuffled(seed), FORMATS[format_name]

    def write_part(part: int, tick: Tick) -> tuple[Written, list[str]]:
        """Write a part; return its summary and the names of its images that were encoded again."""
        first, end = (len(order) * edge // parts for edge in (part, part + 1))
        reencoded = []
        with new_part(output, part, record_format) as records:
            for index in order[first:end]:
                label, name = listing[index]
                synset = listing.classes[label]
                path = f"{listing.folder}/{synset}/{name}"
                image = read_image(path, label, synset, name, index)
                try:
                    records.append(image)
                except ValueError as error:
                    raise ReperfError(f"{path}: {error}") from None
                if image.reencoded:
                    reencoded.append(f"{synset}/{name}")
                tick()
        return records.summary(images=end - first), reencoded

    with all_or_nothing(output):
        with progress(f"images to {format_name}", len(listing)) as watch:
            written = run_parts(write_part, parts, workers, watch)
        record_parts = [part for part, _ in written]
        record_format.finish(output, record_parts)
        return ImageManifest.of_parts(
            output,
            record_parts,
            format=format_name,
            source=str(images),
            seed=seed,
            classes=listing.classes,
            images_per_class=listing.images_per_class(),
            reencoded=sorted(name for _, reencoded in written for name in reencoded),
            ignored=listing.ignored,
        )
