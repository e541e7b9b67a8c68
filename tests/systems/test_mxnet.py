"""What MXNet would do otherwise on GPUs, as far as CPUs can show it."""

import math

import pytest

from tests.helpers.shapes import TINY_BERT

pytestmark = pytest.mark.xdist_group("mxnet")


@pytest.fixture
def mxnet(trainer_of):
    return trainer_of("mxnet")


def test_clipping_shows_gradients_that_are_infinite(mxnet):
    """MXNet's kernel makes no update by a factor of zero or of no number."""
    said = mxnet.answer("""
import horovod.mxnet as hvd, json, mxnet as mx
from trainers.recipes import bert
from trainers.frameworks.mxnet.optimizers import Trainer, make_optimizer
hvd.init()
moved = []
for steepness in (3.0, 1e-3, float("inf"), float("nan")):
    network = mx.gluon.nn.Dense(1, use_bias=False, in_units=2, weight_initializer="ones")
    network.initialize()
    optimizer = make_optimizer(bert.OPTIMIZER, mx.cpu(), learning_rate=0.5, rescale_grad=0.5)
    trainer = Trainer(network.collect_params(), optimizer, clip=1.0, groups=0)
    for _ in range(2):
        with mx.autograd.record():
            loss = network(mx.nd.array([[steepness, 0.0]])).sum()
        loss.backward()
        trainer.step(1)
    moved.append(network.weight.data().asnumpy().sum().item())
print(json.dumps(moved))""")
    assert list(map(math.isfinite, said)) == [True, True, False, False]


def test_on_gpus_all_products_of_a_layer_are_float16(mxnet):
    """Of types alone: a CPU cannot compute it."""
    types = mxnet.answer(f"""
import json, mxnet as mx
from argparse import Namespace
from trainers.frameworks.mxnet import backend
from trainers.frameworks.mxnet.bert import Bert
backend.mix_in("float16")
flags = Namespace(shape={TINY_BERT}, proof=False)
names = "tokens real segments positions masked weights following".split()
graph = Bert(flags, mx.gpu())(*map(mx.sym.var, names)).get_internals()
_, types, _ = graph.infer_type(**dict.fromkeys(names, "float32"))
print(json.dumps({{n: t.__name__ for n, t in zip(graph.list_outputs(), types)}}))""")
    products = [name for name in types if "matmul" in name or name.endswith("fwd_output")]
    assert {types[name] for name in products if "dropout" not in name} == {"float16"}
    assert len([name for name in products if "matmul" in name]) == 2 * TINY_BERT["layers"]
    assert types[list(types)[-1]] == "float32"


def test_settings_for_gpus_stand_before_one_is_used_and_the_users_count_more(mxnet):
    """NVIDIA's for Horovod, and the interface by which NCCL's ranks meet."""
    meets, refused, *settings = mxnet.answer("""
import json, os
from argparse import Namespace
from trainers.contract.backend import Place
from trainers.contract.steplog import Refused
from trainers.frameworks.mxnet import backend_nvidia
from trainers.launchers.horovod import meeting_at
os.environ.pop("NCCL_SOCKET_IFNAME", None)
found = [meeting_at("127.0.0.1", 4000)]
os.environ["NCCL_SOCKET_IFNAME"] = "eth7"
found.append(meeting_at("127.0.0.1", 4000))
names = ("NCCL_SOCKET_IFNAME", "HOROVOD_GLOO_IFACE")
meets = [[one.get(name) for name in names] for one in found]
names = "HOROVOD_CYCLE_TIME", "HOROVOD_NUM_NCCL_STREAMS"
os.environ.pop(names[1], None)
os.environ[names[0]] = "7"
try:
    backend_nvidia.Backend(Namespace(device="cuda", seed=1, threads=1), Place(0, 0, 1))
except Refused as error:
    print(json.dumps([meets, str(error), *map(os.environ.get, names)]))""")
    assert meets == [["lo", "lo"], [None, "lo"]]
    assert refused.startswith("mxnet sees 0 GPUs")
    assert settings == ["7", "2"]
