"""A process of servers_alone.py: Paddle 1.8's fleet, as FleetX's examples write it."""

import os

from paddle import fluid
from paddle.fluid.incubate.fleet.base.role_maker import PaddleCloudRoleMaker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import (
    StrategyFactory,
    fleet,
)
from servers_alone import TRAINERS, Asked
from trainers.recipes import ctr

asked = Asked()
host, port = asked.addresses["ps"][0].split(":")
os.environ.update(
    TRAINING_ROLE="PSERVER" if asked.role == "ps" else "TRAINER",
    PADDLE_PSERVERS_IP_PORT_LIST=asked.addresses["ps"][0],
    PADDLE_TRAINERS_NUM=str(TRAINERS),
    PADDLE_TRAINER_ID=str(asked.number),
    POD_IP=host,
    PADDLE_PORT=port,
)
fleet.init(PaddleCloudRoleMaker())

dense = fluid.data("dense", [None, ctr.DENSE], "float32")
slots = fluid.data("slots", [None, ctr.SLOTS], "int64")
labels = fluid.data("labels", [None], "int64")
size = [asked.shape["rows"], asked.shape["embedding"]]
x = fluid.layers.reshape(fluid.embedding(slots, size, is_sparse=True), [-1, ctr.SLOTS * size[1]])
x = fluid.layers.concat([x, dense], axis=1)
for _ in range(ctr.LAYERS):
    x = fluid.layers.fc(x, asked.shape["hidden"], act="relu")
logits = fluid.layers.fc(x, ctr.CLASSES)
one_each = fluid.layers.reshape(labels, [-1, 1])
loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(logits, one_each))

make = {
    "sync": StrategyFactory.create_sync_strategy,
    "async": StrategyFactory.create_async_strategy,
    "geo": lambda: StrategyFactory.create_geo_strategy(100),
}
fleet.distributed_optimizer(fluid.optimizer.SGD(asked.rate), make[asked.way]()).minimize(loss)
if asked.role == "ps":
    fleet.init_server()
    fleet.run_server()
fleet.init_worker()
executor = fluid.Executor(fluid.CPUPlace())
executor.run(fleet.startup_program)
fed = dict(zip(("dense", "slots", "labels"), asked.batch))  # noqa: B905 - Python 3.7
for iteration in range(1, asked.iterations + 1):
    (value,) = executor.run(fleet.main_program, feed=fed, fetch_list=[loss])
    asked.say(iteration, value.item)
os._exit(0)
