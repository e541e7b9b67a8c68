"""In which data types a model trains: the same for every framework that has them."""

from typing import NamedTuple, Union

from trainers.contract.steplog import Refused

DYNAMIC = "dynamic"


class Precision(NamedTuple):
    """What is computed in which data type; weights, and their updates, are always float32."""

    compute: str
    """The data type of convolutions and matrix products: float32, float16 or bfloat16."""
    loss_scale: Union[float, str, None] = None
    """What the loss is multiplied by, so that no gradient vanishes in float16: a fixed number, or
    DYNAMIC; None in other types, which need none. With a fixed one nothing looks for overflows, as
    in the DLPerf report: infinite weights show in the next loss, and the run is refused."""


def precision_of(recipe, flags, mixed):
    """What the flags ask for.

    Mixed precision is float16 with a fixed loss scale on GPUs, as the DLPerf report trained, and
    bfloat16 on CPUs.

    Args:
        recipe: the workload's numbers.
        flags: what parse_flags returned.
        mixed: device -> the data types in which the framework mixes precisions there, the usual one
            first.

    Raises:
        Refused: the framework cannot do it on the device, or the flags contradict each other.
    """
    types = mixed.get(flags.device, ()) if flags.precision == "amp" else ("float32",)
    if not types:
        raise Refused(f"--precision amp changes nothing here on a {flags.device}; allowed: fp32")
    compute = "bfloat16" if flags.bf16 else types[0]
    if compute not in types:
        raise Refused(f"--bf16 is not for --precision {flags.precision} here; allowed: {types[0]}")
    if compute == "float16":
        scale = DYNAMIC if flags.dynamic_loss_scale else recipe.STATIC_LOSS_SCALE
        return Precision(compute, scale)
    if flags.dynamic_loss_scale:
        raise Refused(f"--dynamic-loss-scale is for float16; this is {compute}")
    return Precision(compute)
