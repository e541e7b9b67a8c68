"""How each engine is told to run a command: text, held against the engines' documentation."""

from dataclasses import replace
from pathlib import Path

import pytest
from reperf.builds.engines import Box, engine_called, parse_reference

from tests.helpers.refusal import refused_in_one_line
from tests.helpers.written_files import write

DIGEST = "sha256:" + "ab" * 32
BOX = Box(
    image="/images/torch.sif",
    folder=Path("/shared/run"),
    mounts=(Path("/shared/reperf"),),
    variables={"CUDA_VISIBLE_DEVICES": "0,1", "NCCL_DEBUG": "it's $HOME"},
    gpus=True,
    name="reperf-1-{node_rank}",
    options=("--further",),
)
COMMAND = [".images/pytorch/overlay/bin/python", "-m", "torch.distributed.run"]


def test_apptainer():
    variables = {"HOME": "/tmp", **BOX.variables}
    start = engine_called("apptainer").start(replace(BOX, variables=variables), COMMAND)
    assert start.command == [
        *("apptainer", "exec", "--cleanenv", "--home=/tmp", "--nv", "--bind=/shared/run"),
        *("--bind=/shared/reperf:/shared/reperf:ro", "--pwd=/shared/run", "--further"),
        *("/images/torch.sif", *COMMAND),
    ]
    # Its option --env would end a value at the comma; HOME it takes as an option alone.
    assert start.variables == {
        "APPTAINERENV_CUDA_VISIBLE_DEVICES": "0,1",
        "APPTAINERENV_NCCL_DEBUG": "it's $HOME",
    }


def test_pyxis():
    start = engine_called("pyxis").start(BOX, COMMAND)
    assert start.command == COMMAND
    assert start.srun_options == (
        "--container-image=/images/torch.sif",
        "--container-workdir=/shared/run",
        "--container-mounts=/shared/run:/shared/run,/shared/reperf:/shared/reperf:ro",
        "--no-container-mount-home",
        "--no-container-entrypoint",
        "--container-env=CUDA_VISIBLE_DEVICES,NCCL_DEBUG",
        "--further",
    )
    assert start.variables == BOX.variables


@pytest.mark.parametrize(
    ("engine", "gpus"), [("podman", "--device=nvidia.com/gpu=all"), ("docker", "--gpus=all")]
)
def test_podman_and_docker_name_their_container_and_remove_it(engine: str, gpus: str):
    box = replace(BOX, image=f"docker.io/me/torch@{DIGEST}")
    start = engine_called(engine).start(box, COMMAND)
    assert start.command[:2] == ["sh", "-c"]
    assert start.command[3:7] == ["sh", BOX.name, engine, engine]
    words = start.command[7:]
    assert words[:4] == ["run", "--rm", f"--name={BOX.name}", "--network=host"]
    assert {gpus, "--entrypoint=", "--env=CUDA_VISIBLE_DEVICES"} <= set(words)
    assert {"--workdir=/shared/run", "--volume=/shared/reperf:/shared/reperf:ro"} <= set(words)
    assert words[-len(COMMAND) - 2 :] == ["--further", box.image, *COMMAND]
    assert start.clean_up == (engine, "rm", "--force", BOX.name)
    assert start.variables == BOX.variables
    without = engine_called(engine).start(replace(box, gpus=False), COMMAND)
    assert gpus not in without.command


@pytest.mark.parametrize(
    ("text", "pulled", "enroot"),
    [
        ("nvcr.io/nvidia/mxnet:24.06", "nvcr.io/nvidia/mxnet:24.06", "nvcr.io#nvidia/mxnet:24.06"),
        (
            f"nvcr.io/nvidia/mxnet:24.06@{DIGEST}",
            f"nvcr.io/nvidia/mxnet@{DIGEST}",
            f"nvcr.io#nvidia/mxnet@{DIGEST}",
        ),
        ("docker://ubuntu", "ubuntu:latest", "ubuntu:latest"),
        ("a.bc/d:x-1", "a.bc/d:x-1", "a.bc#d:x-1"),
        ("localhost:5000/a/b:1", "localhost:5000/a/b:1", "localhost:5000#a/b:1"),
        ("nvcr.io#nvidia/pytorch:1", "nvcr.io/nvidia/pytorch:1", "nvcr.io#nvidia/pytorch:1"),
    ],
)
def test_references_are_written_as_each_engine_wants_them(text, pulled, enroot):
    found = parse_reference(text)
    assert found.digest == (DIGEST if DIGEST in text else None)
    assert (found.pullable, found.for_enroot) == (pulled, enroot)


@pytest.mark.parametrize("text", ["", "A B", "x:y:z", "x@sha256:12", "/x", "-x", "x;rm", "a\nb"])
def test_what_is_no_reference_is_refused(text: str):
    with refused_in_one_line("images: got "):
        parse_reference(text)


@pytest.mark.parametrize("text", [f"docker://me/torch:1@{DIGEST}", f"me/torch@{DIGEST}"])
def test_apptainer_pulls_by_the_digest_alone(tmp_path: Path, monkeypatch, text: str):
    # It refuses a reference with both a tag and a digest, and wants docker:// once.
    write(tmp_path / "apptainer", '#!/bin/sh\nfor last; do :; done\necho "$last" > "$3"\n', 0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    local, digest = engine_called("apptainer").pull(text, tmp_path)
    assert Path(local).read_text() == f"docker://me/torch@{DIGEST}\n"
    assert digest == DIGEST
