"""How fast a system's trainer trains here, beside trainers of others and beside its own past.

All train the same batch from the same weights, in the same precision, with the same optimizer, in
one environment. They take turns, so that a noisy machine treats them alike; each ratio is taken
within a turn.

The past is a checkout of another commit. Beside it alone a system trains in its own environment, as
`make report` or the tests build it; beside others in one that is made for it and thrown away: what
is in the system's lock, and the others' packages.
"""

import argparse
import ctypes
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from reperf.builds import RECORD, LockBuild
from reperf.builds.steps import do, uv_settings
from reperf.systems import TRAINERS, load_systems
from reperf.systems.workloads import load_workloads
from trainers.contract.precision import WORDS
from uv import find_uv_bin

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.systems.trainer import step_log  # noqa: E402

OURS, EARLIER = "reperf", "earlier"
CLOSE = {"fp32": 1e-4}
ROUNDED = 2e-2
"""By what part of ours a first loss may differ, in that precision and in all shorter ones."""
RATES = {"rate": "samples/s", "rate of CPU": "samples/CPU-s"}
"""What is printed of a run; on a busy machine the second is the steadier one."""


class Field(NamedTuple):
    """Who trains a workload in a system's framework beside us.

    Attributes:
        others: the program and the first arguments of each.
        packages: that these need, beside the system's.
    """

    others: dict[str, tuple[str, ...]]
    packages: tuple[str, ...]


RESNETS = ("torchvision", "torchvision-compiled", "timm", "milabench")
FLAX = ("flax==0.12.12", "optax==0.2.8")
FLAX_TRANSFORMERS = (*FLAX, "transformers==4.57.6")
"""The last version of transformers with models in Flax."""
TRANSFORMERS = ("transformers==5.23.0",)
OF_LLAMA = Field(
    {"transformers": ("huggingface_llama.py",), "torchtitan": ("torchtitan_llama.py",)},
    TRANSFORMERS,
)
FIELDS = {
    **{("pytorch", f"llama3-{size}"): OF_LLAMA for size in ("1b", "8b", "70b")},
    ("pytorch", "bert-base"): Field({"transformers": ("huggingface_bert.py",)}, TRANSFORMERS),
    ("pytorch", "gpt2-124m"): Field({"transformers": ("huggingface_gpt2.py",)}, TRANSFORMERS),
    ("pytorch", "resnet50"): Field(
        {name: ("resnet50_of_others.py", name) for name in RESNETS},
        ("torchvision==0.28.0", "timm==1.0.31"),
    ),
    ("jax", "bert-base"): Field({"transformers": ("flax_bert.py",)}, FLAX_TRANSFORMERS),
    **dict.fromkeys(
        (("jax", "llama3-8b"), ("jax", "llama3-70b")),
        Field({"transformers": ("flax_llama.py",)}, FLAX_TRANSFORMERS),
    ),
    ("jax", "resnet50"): Field({"flax": ("flax_resnet50.py",)}, FLAX),
}
NOBODY = Field({}, ())
BATCH_SIZES = {"bert-base": 4} | dict.fromkeys(
    ("gpt2-124m", "llama3-1b", "llama3-8b", "llama3-70b"), 1
)
"""Of a workload, if none is asked for and it is not 16."""

# Asked of a checkout, whose library knows its own trainers.
NAMED = """
import json, sys
from reperf.systems import load_systems
try:
    from reperf.plans.run_plan import naming_flags
except ImportError:  # of a commit whose every program trained one workload
    naming_flags = lambda system, workload: []
name, workload = sys.argv[1:]
system = load_systems().get(name)
if not system or workload not in system.workloads or not system.trainer(workload).exists():
    sys.exit("it has none")
print(json.dumps([str(system.trainer(workload)), *naming_flags(system, workload)]))
"""


class Program(NamedTuple):
    """What trains.

    Attributes:
        words: its file and the flags that are its own.
        library: the folder in which Python finds what it imports.
    """

    words: list[str]
    library: Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--system", choices=tuple(load_systems()), default="pytorch")
    parser.add_argument("--workload", choices=tuple(load_workloads()), default="bert-base")
    parser.add_argument("--earlier", type=Path, help="a checkout of another commit")
    parser.add_argument("--peers", nargs="+", help="such as timm; left out, all, or the past alone")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", choices=WORDS, default="fp32")
    parser.add_argument("--compile", action="store_true", help="ours, and who leaves it open")
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--shape", nargs="*", default=[], help="such as layers=2 hidden=128")
    parser.add_argument("--threads", type=int, default=2)
    # Three hold the first that is not printed, for which TensorFlow 1.15 makes a graph of its own.
    parser.add_argument("--warmup", type=int, default=3, help="iterations before the clock starts")
    parser.add_argument("--iterations", type=int, default=6, help="that are timed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", help="of an environment with all that is needed")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    options = parser.parse_args()
    options.batch_size = options.batch_size or BATCH_SIZES.get(options.workload, 16)
    field = FIELDS.get((options.system, options.workload), NOBODY)
    peers = options.peers or ([] if options.earlier else [*field.others])
    if unknown := set(peers) - set(field.others):
        parser.error(f"--peers {', '.join(unknown)}; allowed: {', '.join(field.others) or 'none'}")
    programs = {OURS: trainer_in(ROOT, options)}
    if options.earlier:
        programs[EARLIER] = trainer_in(options.earlier, options)
    for name in peers:
        file, *arguments = field.others[name]
        words = [str(ROOT / "benchmarks" / file), *arguments]
        programs[name] = Program(words, TRAINERS.parent)
    if len(programs) == 1:
        asked = f"{options.workload} in {options.system}"
        parser.error(f"nobody trains {asked} beside us; allowed: --earlier")
    with tempfile.TemporaryDirectory(prefix="reperf-trainers-") as scratch:
        python = options.python
        if python is None and peers:
            folder = Path(scratch, "environment")
            python = make_environment(folder, build_of(options), field.packages)
        elif python is None:
            python = build_of(options).python
            if not python.exists():
                parser.error(f"no {python}; `snakemake {python.parents[1]}/{RECORD}` builds it")
        rounds = []
        for number in range(options.rounds):
            turns = [*programs]
            turns = turns[number % len(turns) :] + turns[: number % len(turns)]  # others go first
            rounds.append({})
            for name in turns:
                print(f"round {number + 1} of {options.rounds}: {name} ..", file=sys.stderr)
                rounds[-1][name] = train(str(python), programs[name], options)
            check_first_losses(rounds[-1], CLOSE.get(options.precision, ROUNDED))
            print(f"round {number + 1}: {ratios_of(rounds[-1])}", file=sys.stderr)
    show(rounds, options)


def build_of(options: argparse.Namespace) -> LockBuild:
    """The environment of the system that trains."""
    system = load_systems()[options.system]
    return LockBuild(system, system.locks_for(options.device)[0])


def make_environment(folder: Path, build: LockBuild, packages: tuple[str, ...]) -> str:
    """The Python of a new environment with what a lock is for, and packages."""
    uv = find_uv_bin()
    version = build.settings.python
    do([uv, "venv", "--no-project", "--python", version, str(folder)], trouble="no environment")
    python = str(folder / "bin/python")
    install = [uv, "pip", "install", "--python", python, "--constraint", str(build.lock)]
    # What is imported is compiled then: most is not.
    settings = uv_settings(links_of_pip=build.device == "cpu") | {"UV_COMPILE_BYTECODE": "0"}
    do(
        [*install, *build.settings.packages, *packages],
        trouble="the environment cannot be filled",
        environment=os.environ | settings,
    )
    return python


def trainer_in(checkout: Path, options: argparse.Namespace) -> Program:
    """The trainer that a checkout has for the system and the workload; it exits without one."""
    library = (checkout / "workflow").resolve()
    allowed = "a checkout that trains it, such as `git worktree add --detach` makes"
    asked = f"{checkout}: no trainer of {options.workload} in {options.system}"
    if not (library / "reperf").is_dir():  # else Python would find another one
        sys.exit(f"{asked}: it is no checkout; allowed: {allowed}")
    answer = subprocess.run(
        [sys.executable, "-c", NAMED, options.system, options.workload],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(library)},
    )
    if answer.returncode:
        sys.exit(f"{asked}: {answer.stderr.strip().splitlines()[-1]}; allowed: {allowed}")
    return Program(json.loads(answer.stdout), library)


def train(python: str, program: Program, options: argparse.Namespace) -> dict[str, object]:
    """Train once; the rates, the losses, and what trained."""
    workload = options.workload
    pairs = dict(pair.split("=") for pair in options.shape)
    shape = load_workloads()[workload].shape_of({key: int(one) for key, one in pairs.items()})
    flags = [
        *(f"--workload={workload}", f"--precision={options.precision}", "--seed=1"),
        *(f"--batch-size={options.batch_size}", "--input=synthetic", f"--device={options.device}"),
        *(f"--threads={options.threads}", f"--iterations={options.warmup + options.iterations}"),
        *(f"--print-every={options.warmup}", "--shape"),
        *(f"{key}={number}" for key, number in shape.items()),
        *(["--compile"] if options.compile else []),
    ]
    environment = {"PYTHONPATH": str(program.library), "OMP_NUM_THREADS": str(options.threads)}
    environment["PYTHONDONTWRITEBYTECODE"] = ""  # make_environment leaves it to the first that runs
    lines, spent = [], []
    with subprocess.Popen(
        [python, *program.words, *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | environment,
    ) as trainer:
        clock = cpu_clock_of(trainer.pid)
        for line in trainer.stdout:
            lines.append(line)
            if '"tracked_stats"' in line:
                spent.append(time.clock_gettime(clock))
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


def cpu_clock_of(process: int) -> int:
    """The clock of the CPU seconds of all threads of a process, to the microsecond."""
    clock = ctypes.c_int()
    if failed := ctypes.CDLL(None).clock_getcpuclockid(process, ctypes.byref(clock)):
        raise OSError(failed, os.strerror(failed))
    return clock.value


def check_first_losses(turns: dict[str, dict], close: float) -> None:
    """Exit if one trains something else: without dropout, if it has any, first losses are equal."""
    ours = turns[OURS]
    for name, one in turns.items():
        losses = [two["loss without dropout"] for two in (ours, one)]
        if None in losses:
            losses = [next(iter(two["losses"].values())) for two in (ours, one)]
        if not math.isclose(*losses, rel_tol=close):
            sys.exit("{2} trains something else: its loss is {1}, ours {0}".format(*losses, name))


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
        for name in rounds[0]
        if name != OURS
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
    if EARLIER in figures:
        same = figures[EARLIER]["losses"] == own["losses"]
        print("equal to the earlier losses in every digit" if same else "not the earlier losses")
    asked = {key: one for key, one in vars(options).items() if key not in ("json", "python")}
    said = {"asked": asked, "rounds": ratios, **figures}
    print(json.dumps(said, default=str))
    if options.json:
        options.json.write_text(json.dumps(said, indent=2, default=str) + "\n")


if __name__ == "__main__":
    main()
