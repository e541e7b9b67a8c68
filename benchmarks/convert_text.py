"""How fast text becomes records for BERT, beside a plain loop in Python, and with how much memory.

Every round gives the same text to each peer in turn, so that a noisy machine treats them alike. The
plain loop does what google-research/bert's create_pretraining_data does, tokenizer included, one
token after the other; where the named Python has TensorFlow, it writes TFRecords by that. Rates are
medians over the rounds, and so are the ratios, which are taken within each round; those per CPU
second are what a busy machine disturbs least.

Then texts of two sizes are converted, each in a process of its own, and the highest resident memory
of the first process and of the largest worker is printed, what they share included. At last, our
reader of the records is timed by CPU time.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from statistics import median

from reperf.data.text import Text
from reperf.data.text.convert import make as make_text
from trainers.inputs.sentences import Sentences

ROOT = Path(__file__).resolve().parents[1]
SHAPE = {"sequence_length": 128, "max_predictions": 20, "vocabulary": 30522}
PARTS = 8
BATCH, BATCHES = 64, 300
PLAIN = "plain Python"
LOOP = Path(__file__).with_name("plain_text_loop.py")

CONVERT = """
import resource, sys
from pathlib import Path
from reperf.data.text import Text
settings = Text.model_validate_json(sys.argv[1])
made = settings.convert(Path(sys.argv[2]), "tfrecord", workers=2)
print(made.sequences)
for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
    print(resource.getrusage(who).ru_maxrss)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, help="a file, instead of copies of the embedded text")
    parser.add_argument("--copies", type=int, default=12, help="of the embedded text, 0.4 MB each")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", type=int, nargs="+", default=[20, 200], help="copies")
    parser.add_argument("--folder", type=Path, help="where to work, instead of the usual temporary")
    parser.add_argument("--tensorflow", default=sys.executable, help="a Python that has TensorFlow")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        folder = Path(scratch)
        vocabulary = make_vocabulary(folder)
        text = options.text or copies(folder, options.copies)
        rounds = []
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
            rounds.append(one_round(text, vocabulary, folder, options.tensorflow))
        show(rounds, text)
        show_reader(folder / "tfrecord-1")
        for count in options.memory:
            show_memory(copies(folder, count), vocabulary, folder / "output")


def make_vocabulary(folder: Path) -> Path:
    """The vocabulary of the embedded text, which the conversion trains."""
    make_text(folder / "text.txt")
    settings_of(folder / "text.txt", None).convert(folder / "trained", "tfrecord", workers=1)
    return folder / "trained" / "vocab.txt"


def settings_of(text: Path, vocabulary: Path | None) -> Text:
    return Text(
        kind="text",
        text=text,
        vocabulary=vocabulary,
        vocabulary_size=SHAPE["vocabulary"],
        sequence_length=SHAPE["sequence_length"],
        max_predictions=SHAPE["max_predictions"],
        parts=PARTS,
    )


def copies(folder: Path, count: int) -> Path:
    """A file with copies of the embedded text."""
    text = folder / "copies.txt"
    once = (folder / "text.txt").read_bytes()
    with text.open("wb") as stream:
        for _ in range(count):
            stream.write(once)
    return text


def one_round(
    text: Path, vocabulary: Path, folder: Path, python: str
) -> dict[str, tuple[float, float]]:
    """Sequences per second and per CPU second of each peer, by its name."""
    said = subprocess.run(
        [python, LOOP, text, vocabulary, folder / "plain"],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    *taken, writer = said.stdout.split()
    sequences, *clocks = map(float, taken)
    rates = {f"{PLAIN}, {writer.decode()}": tuple(sequences / seconds for seconds in clocks)}
    for name in ("tfrecord", "ofrecord"):
        for workers in (1, 2):
            begin = clocks_now()
            made = settings_of(text, vocabulary).convert(
                folder / f"{name}-{workers}", name, workers=workers
            )
            spent = zip(begin, clocks_now(), strict=True)
            rates[f"reperf {name}, {workers} workers"] = tuple(
                made.sequences / (after - before) for before, after in spent
            )
    return rates


def clocks_now() -> tuple[float, float]:
    """Seconds, and CPU seconds of this process and of those that it waited for."""
    return time.perf_counter(), sum(os.times()[:4])


def show(rounds: list[dict[str, tuple[float, float]]], text: Path) -> None:
    """Print each peer's median rates, and the medians over the rounds of its ratios to the loop."""
    size = text.stat().st_size / 1e6
    print(f"{size:.1f} MB of text, {os.cpu_count()} CPUs, {len(rounds)} rounds")
    columns = ("sequences/s", "of the loop", "per CPU-s", "of the loop")
    print(f"{'':32}" + "".join(f"{column:>13}" for column in columns))
    (plain,) = (name for name in rounds[0] if name.startswith(PLAIN))
    for name in rounds[0]:
        line = f"{name:32}"
        for clock in (0, 1):
            rate = median(one[name][clock] for one in rounds)
            ratio = median(one[name][clock] / one[plain][clock] for one in rounds)
            line += f"{rate:13.0f}{ratio:13.1f}"
        print(line)


def show_reader(records: Path) -> None:
    """Print how many sequences our reader gives in a CPU second."""
    batches = iter(Sentences(records, SHAPE, BATCH, 0, 1))
    next(batches)
    begin = time.process_time()
    for _ in islice(batches, BATCHES):
        pass
    seconds = time.process_time() - begin
    print(f"reading: {BATCH * BATCHES / seconds:.0f} sequences per CPU second, batches of {BATCH}")


def show_memory(text: Path, vocabulary: Path, output: Path) -> None:
    """Print the peak memory of a conversion."""
    answer = subprocess.run(
        [sys.executable, "-c", CONVERT, settings_of(text, vocabulary).model_dump_json(), output],
        stdout=subprocess.PIPE,
        check=True,
    )
    sequences, first, worker = map(int, answer.stdout.split())
    print(
        f"{text.stat().st_size / 1e6:6.1f} MB of text, {sequences} sequences: "
        f"first process {first / 1024:.1f} MiB, largest worker {worker / 1024:.1f} MiB"
    )


if __name__ == "__main__":
    main()
