"""How to get the batches that a system trains on, and what is asked of them.

A loader is Python for the system's own environment. It defines batches(flags, rank, world_size),
which gives images [N, H, W, 3] from 0 to 255 in red, green and blue, and labels.
"""

from pathlib import Path

COLOURS = [(r, g, b) for r in (10, 240) for g in (10, 240) for b in (10, 90, 170, 240)]
"""One for each class of the coloured records: red, green and blue."""

_MXNET = """
import mxnet
from trainers.frameworks.mxnet.images import layout_on
from trainers.frameworks.mxnet.{module} import {reader} as read
def batches(flags, rank, world_size):
    axes = (0, 2, 3, 1) if layout_on(mxnet.cpu()) == "NCHW" else (0, 1, 2, 3)
    for images, labels in read(flags, rank, world_size, mxnet.cpu()):
        yield images.asnumpy().transpose(axes), labels.asnumpy()
"""

LOADERS = {
    "pytorch": """
import torch
from trainers.frameworks.torch.jpegs import decoded_jpegs
def batches(flags, rank, world_size):
    return decoded_jpegs(flags, rank, world_size, torch.device("cpu"))
""",
    "ngc-pytorch": """
import torch
from trainers.frameworks.torch.dali import dali_images
def batches(flags, rank, world_size):
    return dali_images(flags, rank, world_size, torch.device("cpu"))
""",
    "mxnet": _MXNET.format(module="records", reader="record_images"),
    "ngc-mxnet": _MXNET.format(module="dali", reader="dali_images"),
    "tensorflow2": "from trainers.frameworks.tensorflow.inputs import tfrecord_images as batches",
    "ngc-tensorflow1": """
import tensorflow
from trainers.frameworks.tensorflow.inputs import tfrecord_images as batches
tensorflow.compat.v1.enable_eager_execution()
""",
    "oneflow": f"""
import pathlib, socket, subprocess, sys, tempfile
read = {{}}
def batches(flags, rank, world_size):
    if not read:  # all ranks read at once
        read_together(flags, world_size)
    return read[rank]
def read_together(flags, world_size):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        launcher = [sys.executable, "-m", "trainers.launchers.oneflow"]
        launcher += [f"--nproc_per_node={{world_size}}", f"--master_port={{port}}"]
        script = [{str(Path(__file__).with_name("oneflow_ranks.py"))!r}]
        script += [folder, "8", json.dumps(vars(flags))]
        # The launcher ends its whole process group where a rank fails.
        said = subprocess.run(
            [*launcher, *script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, start_new_session=True,
        )
        files = [pathlib.Path(folder, f"{{rank}}.npz") for rank in range(world_size)]
        if said.returncode or not all(file.exists() for file in files):
            sys.exit(f"{{said.stdout}}\\nthe launcher ended with status {{said.returncode}}")
        for rank, file in enumerate(files):
            with np.load(file) as saved:
                read[rank] = list(zip(saved["images"], saved["labels"]))
""",
    "jax": """
from trainers.frameworks.jax.jpegs import decoded_jpegs
def batches(flags, rank, world_size):
    return decoded_jpegs(flags, rank, world_size, None)
""",
    "paddlepaddle": """
from trainers.frameworks.paddle.inputs import images, on_device
def batches(flags, rank, world_size):
    return on_device(images(flags, rank, world_size))
""",
}
