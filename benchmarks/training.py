"""How fast PyTorch's BERT trains here, beside that of Hugging Face's transformers.

Both train the same batch from the same weights, in the same precision, with the same optimizer, in
one environment that is made for it and thrown away: torch of the system's lock, and transformers.
They take turns, so that a noisy machine treats them alike; the ratio is taken within each turn.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import psutil
from reperf.builds.steps import do, uv_settings
from reperf.systems import ENVIRONMENTS, TRAINERS, load_systems, load_workloads
from uv import find_uv_bin

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/systems")]

from trainer import step_log  # noqa: E402

WORKLOAD = "bert-base"
TRANSFORMERS = "transformers==5.23.0"
OURS, PEER = "reperf", "transformers"
RATES = {"rate": "sequences/s", "rate of CPU": "sequences/CPU-s"}
"""What is printed of a run; on a busy machine the second is the steadier one."""
PROGRAMS = {
    OURS: load_systems()["pytorch"].trainer(WORKLOAD),
    PEER: ROOT / "benchmarks/huggingface_bert.py",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", choices=("fp32", "amp"), default="fp32")
    parser.add_argument("--bf16", action="store_true", help="of amp on a GPU, in place of float16")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--shape", nargs="*", default=[], help="such as layers=2 hidden=128")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=2, help="iterations before the clock starts")
    parser.add_argument("--iterations", type=int, default=6, help="that are timed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", help="of an environment that has torch and transformers")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="reperf-trainers-") as scratch:
        python = options.python or make_environment(Path(scratch, "environment"), options.device)
        rounds = []
        for number in range(options.rounds):
            # The first is another one each time.
            turns = [OURS, PEER] if number % 2 == 0 else [PEER, OURS]
            rounds.append({name: train(python, name, options) for name in turns})
            print(f"round {number + 1}: {ratios_of(rounds[-1])}", file=sys.stderr)
    show(rounds, options)


def make_environment(folder: Path, device: str) -> str:
    """The Python of a new environment with the lock's torch, and transformers."""
    uv = find_uv_bin()
    lock = ENVIRONMENTS / ("pytorch.txt" if device == "cpu" else "pytorch.cuda.txt")
    version = load_systems()["pytorch"].locks["cpu"].python
    do([uv, "venv", "--no-project", "--python", version, str(folder)], trouble="no environment")
    python = str(folder / "bin/python")
    install = [uv, "pip", "install", "--python", python, "--constraint", str(lock)]
    settings = uv_settings(links_of_pip=device == "cpu")
    do(
        [*install, "torch", "numpy", TRANSFORMERS],
        trouble="the environment cannot be filled",
        environment=os.environ | settings,
    )
    return python


def train(python: str, name: str, options: argparse.Namespace) -> dict[str, object]:
    """Train once; the rates, the losses, and what trained."""
    pairs = dict(pair.split("=") for pair in options.shape)
    shape = load_workloads()[WORKLOAD].shape_of({key: int(one) for key, one in pairs.items()})
    flags = [
        *(f"--workload={WORKLOAD}", f"--precision={options.precision}", "--seed=1"),
        *(f"--batch-size={options.batch_size}", "--input=synthetic", f"--device={options.device}"),
        *(f"--threads={options.threads}", f"--iterations={options.warmup + options.iterations}"),
        *(f"--print-every={options.warmup}", "--shape"),
        *(f"{key}={number}" for key, number in shape.items()),
        *(["--compile"] if options.compile else []),
        *(["--bf16"] if options.bf16 else []),
    ]
    environment = {"PYTHONPATH": str(TRAINERS.parent), "OMP_NUM_THREADS": str(options.threads)}
    lines, spent = [], []
    with subprocess.Popen(
        [python, str(PROGRAMS[name]), *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | environment,
    ) as trainer:
        for line in trainer.stdout:
            lines.append(line)
            if '"tracked_stats"' in line:
                used = psutil.Process(trainer.pid).cpu_times()
                spent.append(used.user + used.system)
    said = "".join(lines)
    if trainer.returncode:
        sys.exit(said)
    events, steps = step_log(said)
    first, last = steps[0], steps[-1]
    samples = last["samples"] - first["samples"]
    return {
        "rate": samples / (last["seconds"] - first["seconds"]),
        "rate of CPU": samples / (spent[-1] - spent[0]),
        "loss without dropout": events["loss_without_dropout"],
        "last loss": last["loss"],
        "framework": events["framework"],
        "device": events["devices"][0],
        "precision": events["precision"],
    }


def ratios_of(turns: dict[str, dict]) -> dict[str, float]:
    """The rates of ours over those of the peer, in one round."""
    return {rate: turns[OURS][rate] / turns[PEER][rate] for rate in RATES}


def show(rounds: list[dict[str, dict]], options: argparse.Namespace) -> None:
    """Print each one's median rates, the losses beside each other, and the median ratios."""
    figures = {
        name: rounds[0][name] | {rate: median(one[name][rate] for one in rounds) for rate in RATES}
        for name in (OURS, PEER)
    }
    print(f"\n{'':14}{''.join(f'{rate:>18}' for rate in RATES.values())}  loss without dropout")
    for name, one in figures.items():
        rates = "".join(f"{one[rate]:18.3f}" for rate in RATES)
        print(f"{name:14}{rates}  {one['loss without dropout']:20.6f}")
    ratios = list(map(ratios_of, rounds))
    medians = {rate: median(one[rate] for one in ratios) for rate in RATES}
    print(f"{'ratio':14}{''.join(f'{medians[rate]:18.3f}' for rate in RATES)}")
    asked = {key: one for key, one in vars(options).items() if key not in ("json", "python")}
    said = {"asked": asked, "ratio": medians, "ratios": ratios, **figures}
    print(json.dumps(said))
    if options.json:
        options.json.write_text(json.dumps(said, indent=2) + "\n")


if __name__ == "__main__":
    main()
