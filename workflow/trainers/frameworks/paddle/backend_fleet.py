"""Paddle 1.8 with parameter servers for trainers.contract.driver: fleet, by transpiled programs.

A model is a function that adds its operations to the default program: it takes the flags and
returns the inputs, in the order of a batch, whose last arrays it may leave out, and the mean loss.
Its parameters have the names and sizes of the recipe's. The part `taken` makes of a batch what a
model takes otherwise.

Servers hold the weights, cut into blocks of neighbouring rows, and update them by SGD. Trainers
wait until the servers have the gradients of all, or do not (--own-time), or (--push-every) update
weights of their own and send what has changed every so many steps, which is GEO-SGD.
"""

import os
from collections import namedtuple

import numpy as np
import paddle
from paddle import fluid
from paddle.fluid.incubate.fleet.base.role_maker import Role, UserDefinedRoleMaker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import (
    StrategyFactory,
    fleet,
)

from trainers.contract import backend as contract
from trainers.contract import settings
from trainers.contract.steplog import Refused


class Backend(contract.Backend):
    """Paddle 1.8 on the CPU; numpy's arrays are its numbers."""

    def __init__(self, flags, place):
        super().__init__(flags, place)
        self.executor = fluid.Executor(fluid.CPUPlace())

    def numbers(self, array):
        return array

    def array(self, numbers):
        return numbers

    def versions(self):
        return {"paddlepaddle": paddle.__version__}

    def put(self, batch):
        return batch

    def step(self, work):
        return Pushed(self, work)


class Pushed(contract.Step):
    """Gradients or changes go to the servers, and weights come from them."""

    optimizer = "SGD on the servers"

    def __init__(self, backend, work):
        _check(work)
        self._run = backend.executor.run
        self.feed = contract.Feed(backend, work)
        self._taken = work.part("taken", tuple)
        self._inputs, self._loss, parameters = transpiled(work)
        if work.flags.own_time:
            fleet.init_worker()  # what the next line sends goes by way of it
        self._run(fleet.startup_program)
        self._weights = {one.name: _Pulled(one.name, one.shape) for one in parameters}

    def weights(self):
        return self._weights.items()

    def read(self, weight):
        return weight.from_servers(self._run)

    def __call__(self, wanted):
        fed = dict(zip(self._inputs, self._taken(next(self.feed))))
        return self._run(
            fleet.main_program, feed=fed, fetch_list=[self._loss], use_program_cache=True
        )

    def fetch(self, loss):
        return float(loss[0])


def serve(work):
    """Hold blocks of the weights, and update them, until somebody ends it."""
    number = int(os.environ["SERVER"])
    transpiled(work)
    if _added_up(work.flags) > 1:
        _update_by_each_gradient(fleet.main_program)
    fleet.init_server()
    for name in work.shapes:
        for block in blocks_of(name):
            if block.endpoint == fleet.server_endpoints()[number]:
                rows = work.start(name)[block.rows]
                _tensor(block.name).set(np.ascontiguousarray(rows), fluid.CPUPlace())
    os.write(1, b"server %d: has its weights\n" % number)
    fleet.run_server()


def transpiled(work):
    """Make the programs of this process's role; returns inputs' names, the loss, parameters."""
    inputs, loss = work.model(work.flags)
    parameters = fluid.default_main_program().all_parameters()
    strategy = _strategy(work.flags)
    fleet.init(_role())
    rate = work.rate / _added_up(work.flags)
    fleet.distributed_optimizer(fluid.optimizer.SGD(rate), strategy).minimize(loss)
    return [one.name for one in inputs], loss, parameters


def _added_up(flags):
    """Of how many trainers servers add up the gradients: of which SGD's step is their mean."""
    return 1 if flags.own_time else int(os.environ["WORLD_SIZE"])


def _update_by_each_gradient(program):
    """Let a server subtract each trainer's gradient, where it would subtract their mean."""
    # Paddle's sum of a table's rows costs more than all updates. The rate is for it: _added_up.
    of_all = program.global_block().vars
    for block in program.blocks:
        kinds = [one.type for one in block.ops]
        if "sum" not in kinds:
            continue
        if kinds != ["sum", "scale", "sgd"]:
            raise Refused("a server adds up gradients in another way: %s" % kinds)
        added, _, update = block.ops
        gradients, weight = added.input("X"), of_all[update.input("Param")[0]]
        rate = of_all[update.input("LearningRate")[0]]
        for _ in kinds:
            block._remove_op(0)
        for gradient in gradients:
            given = {"Param": weight, "Grad": of_all[gradient], "LearningRate": rate}
            block.append_op(type="sgd", inputs=given, outputs={"ParamOut": weight})
    program._sync_with_cpp()


def _role():
    """What trainers.launchers.roles says of this process."""
    said = os.environ
    role, number = (Role.SERVER, "SERVER") if "SERVER" in said else (Role.WORKER, "RANK")
    servers = said["SERVERS"].split(",")
    return UserDefinedRoleMaker(int(said[number]), role, int(said["WORLD_SIZE"]), servers)


def _check(work):
    """Refuse what the servers do not do: trainers say it, for a server's end is no reason."""
    flags = work.flags
    if work.optimizer.momentum or any(map(work.decay, work.shapes)):
        raise Refused("the servers know plain SGD; allowed: no momentum and no decay")
    each = flags.push_every
    if each is not None and not (flags.own_time and 1 <= each <= flags.iterations):
        allowed = f"with --own-time, 1 to --iterations, {flags.iterations}"
        raise Refused(f"--push-every is {each}; allowed: {allowed}")


def _strategy(flags):
    if flags.push_every is not None:
        return StrategyFactory.create_geo_strategy(flags.push_every)
    if flags.own_time:
        strategy = StrategyFactory.create_async_strategy()
        # Beside a thread of its own that pulls weights, the one that pushes gradients never sleeps.
        name = "communicator_independent_recv_thread"
        strategy.set_trainer_runtime_config({name: settings.switched(name, "0")})
        return strategy
    # The program itself sends: fleet's threads would copy a table's gradient into sorted trees.
    strategy = StrategyFactory.create_sync_strategy()
    config = strategy.get_program_config()
    config.runtime_split_send_recv = False
    # A server that adds up the gradients of all trainers cannot do it for one, who waits anyway.
    config.sync_mode = config.completely_not_async = _added_up(flags) > 1
    settings.switched("runtime_split_send_recv", "0")
    if _added_up(flags) > 1:
        settings.switched("server program", "updates by each trainer's gradient, not by their sum")
    return strategy


def filled_later(name):
    """A parameter that is zero until the servers' values come; models name theirs so."""
    return fluid.ParamAttr(name=name, initializer=fluid.initializer.Constant(0.0))


_Block = namedtuple("_Block", "name endpoint rows size")
"""Neighbouring rows of a weight, which one server holds."""


def blocks_of(name):
    """The blocks of a weight, in the order of their rows; transpiled() has cut it."""
    program = fluid.default_main_program()
    every = program._parameters_on_pservers.distributed_vars
    own = sorted((one for one in every if one.origin.name == name), key=lambda one: one.block_id)
    blocks, first = [], 0
    for one in own:
        size = tuple(one.slice.shape)
        blocks.append(_Block(one.slice.name, one.endpoint, slice(first, first + size[0]), size))
        first += size[0]
    return blocks


class _Pulled:
    """A weight as the servers have it: what a trainer keeps of a table may be older."""

    def __init__(self, name, shape):
        self._program, self._blocks, self.shape = fluid.Program(), [], shape
        does = self._program.global_block()
        for block in blocks_of(name):
            how = {"name": block.name, "shape": block.size, "dtype": "float32"}
            outputs = {"Out": [does.create_var(persistable=True, **how)]}
            attrs = {"epmap": [block.endpoint], "with_barrier": False}
            does.append_op(type="recv", inputs={"X": []}, outputs=outputs, attrs=attrs)
            self._blocks.append(block.name)

    def from_servers(self, run):
        run(self._program)
        blocks = [np.array(_tensor(name)) for name in self._blocks]
        return np.concatenate(blocks).reshape(self.shape)


def _tensor(name):
    return fluid.global_scope().find_var(name).get_tensor()
