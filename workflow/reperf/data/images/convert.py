"""Convert a folder of images to record parts."""

from pathlib import Path

from reperf.data.images.formats import FORMATS
from reperf.data.images.image import read_image
from reperf.data.images.kind import Images
from reperf.data.images.listing import Listing
from reperf.data.manifest import Manifest, Written
from reperf.data.parallel import run_parts
from reperf.data.part import all_or_nothing, new_part
from reperf.errors import ReperfError


def convert(settings: Images, output: Path, format_name: str, *, workers: int) -> Manifest:
    """Convert images to records: part-00000 and so on, the files beside them, manifest.json.

    Images are shuffled by the seed and dealt out evenly.

    Raises:
        ReperfError: an image or a name cannot be converted, there are fewer images than parts, or
            a file cannot be written.
    """
    assert settings.images
    listing, parts = Listing(settings.images), settings.parts
    if parts > len(listing):
        raise ReperfError(
            f"{listing.folder}: {len(listing)} images for {parts} parts; "
            "allowed: at least one image per part"
        )
    order, record_format = listing.shuffled(settings.seed), FORMATS[format_name]

    def write_part(part: int) -> tuple[Written, list[str]]:
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
        return records.summary(images=end - first), reencoded

    with all_or_nothing(output):
        results = run_parts(write_part, parts, workers, f"images to {format_name}")
        written = [part for part, _ in results]
        record_format.finish(output, written)
        return settings.write_manifest(
            output,
            format_name,
            written,
            images=None,  # these two stand before the classes
            bytes=None,
            classes=listing.classes,
            images_per_class=listing.images_per_class,
            reencoded=sorted(name for _, reencoded in results for name in reencoded),
            ignored=listing.ignored,
        )
