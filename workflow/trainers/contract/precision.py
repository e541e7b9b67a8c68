"""In which data types a model trains: the same for every framework that has them."""

from typing import NamedTuple, Union

from trainers.contract.steplog import Refused

DYNAMIC = "dynamic"
STATIC_LOSS_SCALE = 128.0
"""By what float16's loss is multiplied, as in DLPerf's scripts for TensorFlow 1."""
COMPUTES = {
    "fp32": "float32",
    "tf32": "tf32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8": "float8",
}
"""What is asked for -> the data type of convolutions and matrix products."""
AMP = {"cuda": "fp16", "cpu": "bf16"}
"""What `amp` is on a device: on GPUs what the DLPerf report trained in."""
WORDS = (*COMPUTES, "amp")
_IN_MEMORY = {"tf32": "float32", "float8": "bfloat16"}


class Precision(NamedTuple):
    """What is computed in which data type; weights, and their updates, are always float32."""

    compute: str
    """The data type of convolutions and matrix products: float32, tf32, float16, bfloat16 or
    float8. Only the products of layers are computed in float8."""
    loss_scale: Union[float, str, None] = None
    """What the loss is multiplied by, so that no gradient vanishes in float16: a fixed number, or
    DYNAMIC; None in other types, which need none. With a fixed one nothing looks for overflows, as
    in the DLPerf report: infinite weights show in the next loss, and the run is refused."""

    @property
    def dtype(self):
        """The data type of features in memory; float8 only exists inside of products."""
        return _IN_MEMORY.get(self.compute, self.compute)

    @property
    def factor(self):
        """What the loss is multiplied by, as far as it is known: 1.0 if it is found out."""
        return 1.0 if self.loss_scale in (None, DYNAMIC) else self.loss_scale


def asked(flags):
    """What the flags ask for, by its own name: what `amp` is on their device."""
    return AMP[flags.device] if flags.precision == "amp" else flags.precision


def halves(flags):
    """Whether the flags ask for features of 16 bits."""
    return asked(flags) in ("fp16", "bf16", "fp8")


def precision_of(flags, computes):
    compute, there = COMPUTES[asked(flags)], ("float32", *computes.get(flags.device, ()))
    if compute not in there:
        allowed = ", ".join(word for word, one in COMPUTES.items() if one in there)
        what = f"--precision {flags.precision} is not to be had here on a {flags.device}"
        raise Refused(f"{what}; allowed: {allowed}")
    if compute == "float16":
        return Precision(compute, DYNAMIC if flags.dynamic_loss_scale else STATIC_LOSS_SCALE)
    if flags.dynamic_loss_scale:
        raise Refused(f"--dynamic-loss-scale is for float16; this is {compute}")
    return Precision(compute)
