"""How fast PyTorch's trainers train here, beside those of others in PyTorch.

All train the same batch from the same weights, in the same precision, with the same optimizer, in
one environment that is made for it and thrown away: torch of the system's lock, and the others'
packages. They take turns, so that a noisy machine treats them alike; each ratio is taken within a
turn.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psutil
from reperf.builds.steps import do, uv_settings
from reperf.plans.run_plan import naming_flags
from reperf.systems import ENVIRONMENTS, TRAINERS, load_systems, load_workloads
from trainers.contract.precision import WORDS
from uv import find_uv_bin

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/systems")]

from trainer import step_log  # noqa: E402

OURS = "reperf"
RATES = {"rate": "samples/s", "rate of CPU": "samples/CPU-s"}
"""What is printed of a run; on a busy machine the second is the steadier one."""


class Field(NamedTuple):
    """Who trains a workload beside us.

    Attributes:
        others: the program and the first arguments of each.
        packages: that these need, beside torch and numpy.
        batch_size: if none is asked for.
    """

    others: dict[str, tuple[str, ...]]
    packages: tuple[str, ...]
    batch_size: int


RESNETS = ("torchvision", "torchvision-compiled", "timm", "milabench")
FIELDS = {
    "bert-base": Field(
        {"transformers": ("huggingface_bert.py",)}, ("transformers==5.23.0",), batch_size=4
    ),
    "resnet50": Field(
        {name: ("resnet50_of_others.py", name) for name in RESNETS},
        ("torchvision==0.28.0", "timm==1.0.31", "simplejpeg", "opencv-python-headless"),
        batch_size=16,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", choices=tuple(FIELDS), default="bert-base")
    parser.add_argument("--peers", nargs="+", help="such as timm; left out, all of the workload")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", choices=WORDS, default="fp32")
    parser.add_argument("--compile", action="store_true", help="ours, and who leaves it open")
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--shape", nargs="*", default=[], help="such as layers=2 hidden=128")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=2, help="iterations before the clock starts")
    parser.add_argument("--iterations", type=int, default=6, help="that are timed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", help="of an environment with torch and what the others need")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    options = parser.parse_args()
    field = FIELDS[options.workload]
    options.batch_size = options.batch_size or field.batch_size
    options.peers = options.peers or list(field.others)
    if unknown := set(options.peers) - set(field.others):
        parser.error(f"--peers {', '.join(unknown)}; allowed: {', '.join(field.others)}")
    with tempfile.TemporaryDirectory(prefix="reperf-trainers-") as scratch:
        folder = Path(scratch, "environment")
        python = options.python or make_environment(folder, options.device, field.packages)
        rounds = []
        for number in range(options.rounds):
            turns = [OURS, *options.peers]
            turns = turns[number % len(turns) :] + turns[: number % len(turns)]  # others go first
            rounds.append({})
            for name in turns:
                print(f"round {number + 1} of {options.rounds}: {name} ..", file=sys.stderr)
                rounds[-1][name] = train(python, name, options)
            print(f"round {number + 1}: {ratios_of(rounds[-1])}", file=sys.stderr)
    show(rounds, options)


def make_environment(folder: Path, device: str, packages: tuple[str, ...]) -> str:
    """The Python of a new environment with the lock's torch, and packages."""
    uv = find_uv_bin()
    lock = ENVIRONMENTS / ("pytorch.txt" if device == "cpu" else "pytorch.cuda.txt")
    version = load_systems()["pytorch"].locks["cpu"].python
    do([uv, "venv", "--no-project", "--python", version, str(folder)], trouble="no environment")
    python = str(folder / "bin/python")
    install = [uv, "pip", "install", "--python", python, "--constraint", str(lock)]
    # What is imported is compiled then: most is not.
    settings = uv_settings(links_of_pip=device == "cpu") | {"UV_COMPILE_BYTECODE": "0"}
    do(
        [*install, "torch", "numpy", *packages],
        trouble="the environment cannot be filled",
        environment=os.environ | settings,
    )
    return python


def train(python: str, name: str, options: argparse.Namespace) -> dict[str, object]:
    """Train once; the rates, the losses, and what trained."""
    workload = options.workload
    pairs = dict(pair.split("=") for pair in options.shape)
    shape = load_workloads()[workload].shape_of({key: int(one) for key, one in pairs.items()})
    if name == OURS:
        system = load_systems()["pytorch"]
        program = [str(system.trainer(workload)), *naming_flags(system, workload)]
    else:
        file, *arguments = FIELDS[workload].others[name]
        program = [str(ROOT / "benchmarks" / file), *arguments]
    flags = [
        *(f"--workload={workload}", f"--precision={options.precision}", "--seed=1"),
        *(f"--batch-size={options.batch_size}", "--input=synthetic", f"--device={options.device}"),
        *(f"--threads={options.threads}", f"--iterations={options.warmup + options.iterations}"),
        *(f"--print-every={options.warmup}", "--shape"),
        *(f"{key}={number}" for key, number in shape.items()),
        *(["--compile"] if options.compile else []),
    ]
    environment = {"PYTHONPATH": str(TRAINERS.parent), "OMP_NUM_THREADS": str(options.threads)}
    lines, spent = [], []
    with subprocess.Popen(
        [python, *program, *flags],
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
        "loss without dropout": events.get("loss_without_dropout"),
        "losses": {step["iteration"]: step["loss"] for step in steps},
        "framework": events["framework"],
        "device": events["devices"][0],
        "precision": events["precision"],
    }


def ratios_of(turns: dict[str, dict]) -> dict[str, dict[str, float]]:
    """Our rates over those of each peer, in one round."""
    return {
        name: {rate: turns[OURS][rate] / one[rate] for rate in RATES}
        for name, one in turns.items()
        if name != OURS
    }


def show(rounds: list[dict[str, dict]], options: argparse.Namespace) -> None:
    """Print each one's median rates and our median ratios to it, and the losses of all."""
    ratios = list(map(ratios_of, rounds))
    figures = {
        name: rounds[0][name]
        | {rate: median(one[name][rate] for one in rounds) for rate in RATES}
        | {f"ours / {rate}": median(one[name][rate] for one in ratios) for rate in RATES}
        for name in options.peers
    }
    own = rounds[0][OURS] | {rate: median(one[OURS][rate] for one in rounds) for rate in RATES}
    figures = {OURS: own, **figures}
    columns = RATES | {f"ours / {rate}": f"ours / it, {unit}" for rate, unit in RATES.items()}
    print(f"\n{'':22}{''.join(f'{title:>26}' for title in columns.values())}")
    for name, one in figures.items():
        cells = (f"{one[key]:.3f}" if key in one else "-" for key in columns)
        print(f"{name:22}{''.join(f'{cell:>26}' for cell in cells)}")
    print("\nlosses, by iteration")
    for name, one in figures.items():
        first = one["loss without dropout"]
        losses = {"without dropout": first} if first is not None else {}
        losses |= one["losses"]
        print(f"{name:22}{'  '.join(f'{when}: {loss:.6f}' for when, loss in losses.items())}")
    asked = {key: one for key, one in vars(options).items() if key not in ("json", "python")}
    said = {"asked": asked, "rounds": ratios, **figures}
    print(json.dumps(said))
    if options.json:
        options.json.write_text(json.dumps(said, indent=2) + "\n")


if __name__ == "__main__":
    main()
