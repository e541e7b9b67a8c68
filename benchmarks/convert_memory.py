"""How much memory a conversion takes as the number of images grows.

Hard links to the embedded images stand for a large set, so the disk holds each image once. Every
conversion runs in processes of its own; printed is the highest resident memory of the first process
and of the largest worker, shared libraries and what they share with each other included.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from reperf.data.images.convert import make as make_images

CONVERT = """
import resource, sys
from pathlib import Path
from reperf.data.images import Images
Images(images=sys.argv[1], parts=32).convert(Path(sys.argv[2]), "tfrecord", workers=2)
for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
    print(resource.getrusage(who).ru_maxrss)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--folder", type=Path, help="where to work, instead of the usual temporary")
    options = parser.parse_args()
    print(f"{'images':>8} {'first process':>15} {'largest worker':>15}")
    for count in options.images:
        with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
            images, output = Path(scratch, "images"), Path(scratch, "output")
            link_many_images(images, count)
            answer = subprocess.run(
                [sys.executable, "-c", CONVERT, images, output], stdout=subprocess.PIPE, check=True
            )
        first, worker = (int(kilobytes) / 1024 for kilobytes in answer.stdout.split())
        print(f"{count:8} {first:11.1f} MiB {worker:11.1f} MiB")


def link_many_images(folder: Path, count: int) -> None:
    """Fill a folder with the embedded images and hard links to them."""
    make_images(folder)
    originals = sorted(folder.glob("train/*/*.JPEG"))
    for number in range(len(originals), count):
        original = originals[number % len(originals)]
        os.link(original, original.with_name(f"{original.parent.name}_{number}.JPEG"))


if __name__ == "__main__":
    main()
