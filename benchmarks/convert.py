"""How fast images become records, beside the peers that bound it.

Every round gives the same files, which lie in the page cache, to each peer in turn, so that a noisy
machine treats them alike. Rates are medians over the rounds, and so are the ratios to `cp -r`,
which are taken within each round.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from reperf.data.images import Images
from reperf.data.images.convert import make as make_images
from reperf.data.images.formats import FORMATS

PARTS = 8
CONCATENATE = """find "$0" -name '*.JPEG' -print0 | xargs -0 cat > "$1" """
TENSORFLOW_LOOP = Path(__file__).with_name("tensorflow_writer.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=8000, help="copies of the embedded ones")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where to work, instead of the usual temporary")
    parser.add_argument("--tensorflow", default=sys.executable, help="a Python that has TensorFlow")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        images, output = Path(scratch, "images"), Path(scratch, "output")
        megabytes = make_many_images(images, options.images) / 1e6
        rounds = []
        # The round before the first fills the page cache.
        for number in range(options.rounds + 1):
            print(f"round {number} of {options.rounds}", file=sys.stderr)
            rounds.append(one_round(images, output, options.tensorflow))
    show(rounds[1:], options.images, megabytes)


def make_many_images(folder: Path, count: int) -> int:
    """Fill a folder with the embedded images and copies of them; returns their size in bytes."""
    make_images(folder)
    originals = sorted(folder.glob("train/*/*.JPEG"))
    for number in range(len(originals), count):
        original = originals[number % len(originals)]
        shutil.copyfile(original, original.with_name(f"{original.parent.name}_{number}.JPEG"))
    return sum(path.stat().st_size for path in folder.glob("train/*/*.JPEG"))


def one_round(images: Path, output: Path, tensorflow: str) -> dict[str, float]:
    """The seconds that each peer takes for the images, by its name."""
    seconds = {
        "cp -r": time_command(output, "cp", "-r", images, output / "images"),
        "concatenation": time_command(output, "sh", "-c", CONCATENATE, images, output / "all"),
    }
    for name in FORMATS:
        for workers in (1, 2):
            output.mkdir()
            begin = time.perf_counter()
            Images(images=images, parts=PARTS).convert(output, name, workers=workers)
            seconds[f"reperf {name}, {workers} workers"] = time.perf_counter() - begin
            shutil.rmtree(output)
    if has_tensorflow(tensorflow):
        output.mkdir()
        answer = subprocess.run(
            [tensorflow, TENSORFLOW_LOOP, images, output / "all"], capture_output=True, check=True
        )
        seconds["TensorFlow's TFRecordWriter"] = float(answer.stdout)
        shutil.rmtree(output)
    return seconds


def has_tensorflow(python: str) -> bool:
    """Whether a Python can import TensorFlow."""
    tried = subprocess.run([python, "-c", "import tensorflow"], check=False, capture_output=True)
    return tried.returncode == 0


def time_command(output: Path, *command: str | Path) -> float:
    """The seconds that a command takes which fills the output folder."""
    output.mkdir()
    begin = time.perf_counter()
    subprocess.run(command, check=True)
    seconds = time.perf_counter() - begin
    shutil.rmtree(output)
    return seconds


def show(rounds: list[dict[str, float]], images: int, megabytes: float) -> None:
    """Print each peer's median rate, and the median over the rounds of its ratio to `cp -r`."""
    print(f"{images} images, {megabytes:.0f} MB, {len(rounds)} rounds")
    print(f"{'':30} {'images/s':>10} {'MB/s':>8} {'of cp -r':>9}")
    for name in rounds[0]:
        seconds = median(taken[name] for taken in rounds)
        ratio = median(taken["cp -r"] / taken[name] for taken in rounds)
        print(f"{name:30} {images / seconds:10.0f} {megabytes / seconds:8.0f} {ratio:9.2f}")


if __name__ == "__main__":
    main()
