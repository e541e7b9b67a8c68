"""TensorFlow 2 on parameter servers, for trainers.contract.driver.

trainers.launchers.roles starts all. Servers hold the weights: tables, whose rows are looked up, are
cut over all of them, and any other weight is on one. Trainers update them by plain SGD and wait for
no other trainer: each in a session of the v1 API, in its own time, or as workers of a
ParameterServerStrategy, whose coordinator is rank 0, a worker itself.
"""

import contextlib
import os

import numpy as np
import tensorflow as tf

from trainers.contract import backend as contract
from trainers.contract import settings
from trainers.contract.recipe import Sgd
from trainers.contract.steplog import Refused
from trainers.frameworks.tensorflow.layers import Layers
from trainers.frameworks.tensorflow.shared import Eager

v1 = tf.compat.v1

_WAITING = 4
"""Operations of a process that may run at a time, as long as they wait for another process: with a
single one, a coordinator and its workers wait for ever."""


def _cluster():
    jobs = {"ps": "SERVERS", "worker": "TRAINERS"}
    return tf.train.ClusterSpec({job: os.environ[one].split(",") for job, one in jobs.items()})


def _server(job, number, threads=0, device_filters=()):
    """A server of a cluster's job; 0 threads are as many as there are cores."""
    config = v1.ConfigProto(
        intra_op_parallelism_threads=threads,
        inter_op_parallelism_threads=max(threads, _WAITING),
        device_filters=device_filters,
    )
    # Idle threads would spin before they sleep, on cores that others need.
    config.experimental.disable_thread_spinning = True
    settings.switched("disable_thread_spinning", "1")
    return tf.distribute.Server(_cluster(), job, number, config=config)


def serve(work):
    """Hold weights, until somebody ends this."""
    number = int(os.environ["SERVER"])
    server = _server("ps", number)
    os.write(1, b"server %d: listens\n" % number)
    server.join()


class Backend(Eager):
    device, library = "CPU:0", "TensorFlow over gRPC"

    def __init__(self, flags, place):
        super().__init__(flags, place)
        if "SERVERS" not in os.environ:
            raise Refused("there are no parameter servers; allowed: a run with servers")
        tf.config.threading.set_intra_op_parallelism_threads(flags.threads)
        tf.config.threading.set_inter_op_parallelism_threads(max(flags.threads, _WAITING))

    def versions(self):
        return {"tensorflow": tf.__version__}

    def put(self, batch):
        return batch

    def step(self, work):
        plain = isinstance(work.optimizer, Sgd) and not work.optimizer.momentum
        if not plain or any(map(work.decay, work.shapes)):
            allowed = "a recipe without momentum or decay"
            raise Refused(f"servers update by plain SGD; allowed: {allowed}")
        if work.flags.own_time:
            return Session(self, work)
        return Coordinator(self, work) if self.place.rank == 0 else Worker(self, work)

    def disconnect(self):
        # A coordinator says goodbye to its workers when it ends.
        if self.place.rank and not self.flags.own_time:
            with contextlib.suppress(ConnectionError):
                self.gather("done")


class Shared(Layers):
    """Weights that lie on servers, and layers of them."""

    def __init__(self, work, make):
        self._work = work
        # Each batch is an update of its own, whatever the number of trainers.
        self._rate = work.recipe.learning_rate(work.flags.batch_size)
        servers = len(os.environ["SERVERS"].split(","))
        self._cuts = {
            name: [len(rows) for rows in np.array_split(range(size[0]), servers)]
            if name in work.recipe.TABLES
            else [size[0]]
            for name, size in work.shapes.items()
        }
        self._parts = {}
        for name, cut in self._cuts.items():
            sizes = ((rows, *work.shapes[name][1:]) for rows in cut)
            self._parts[name] = [make(f"{name}.{n}", size) for n, size in enumerate(sizes)]
        self.variables = [one for parts in self._parts.values() for one in parts]
        """All of them: of a table, the neighbouring rows that each server has."""
        whole = work.shapes.keys() - set(work.recipe.TABLES)
        super().__init__({name: self._parts[name][0] for name in whole})

    def rows(self, indices, name):
        """The rows of a table that indices, of any shape, name: one more axis."""
        return v1.nn.embedding_lookup(self._parts[name], indices, partition_strategy="div")

    def started(self):
        """Each variable, and the array from which it starts."""
        for name, cut in self._cuts.items():
            yield from zip(self._parts[name], np.split(self._work.start(name), np.cumsum(cut)[:-1]))

    def named(self):
        return [(one.name, one) for one in self.variables]

    def arrays(self, read):
        """Name and array of each weight, given what reads variables."""
        for name, parts in self._parts.items():
            yield name, np.concatenate(read(parts))

    def update(self, gradients):
        """The operation that subtracts gradients, in the order of variables, times the rate."""
        return tf.group(*map(self._subtract, self.variables, gradients))

    def _subtract(self, variable, gradient):
        if gradient is None:
            raise Refused(f"the loss does not depend on {variable.name}")
        to, ops = {"resource": variable.handle}, tf.raw_ops
        with v1.device(variable.device):
            if isinstance(gradient, tf.IndexedSlices):
                taken = self._rate * gradient.values
                return ops.ResourceScatterSub(indices=gradient.indices, updates=taken, **to)
            return ops.AssignSubVariableOp(value=self._rate * gradient, **to)


class Session(contract.Step):
    """A trainer of its own: a session of the v1 API on the servers and this process alone."""

    def __init__(self, backend, work):
        self.feed = contract.Feed(backend, work)
        rank = backend.place.rank
        own = f"/job:worker/task:{rank}"
        # Else it would wait for all trainers, and hang where one of them has ended.
        filters = ["/job:ps", own]
        self._server = _server("worker", rank, work.flags.threads, filters)
        setter = v1.train.replica_device_setter(cluster=_cluster(), worker_device=own)
        with tf.Graph().as_default(), v1.device(setter):
            batch, loss, given = self._build(work)
            config = v1.ConfigProto(device_filters=filters)
            self._session = v1.Session(self._server.target, config=config)
        if rank == 0:
            for variable, start in self._layers.started():
                self._session.run(variable.initializer, {given[variable.name]: start})
        backend.gather("the weights are there")
        self._train = self._session.make_callable(loss, batch)

    def _build(self, work):
        """What takes a batch, the loss after the update, and what takes each variable's start."""
        given = {}

        # Trainers that make a variable by the same name share it.
        def make(name, size):
            start = v1.placeholder(tf.float32, size)
            variable = v1.Variable(start, name=name, use_resource=True)
            given[variable.name] = start
            return variable

        self._layers = Shared(work, make)
        flags, random = work.flags, np.random.RandomState(0)
        example = work.recipe.synthetic_batch(flags.shape, flags.batch_size, random)
        batch = [v1.placeholder(one.dtype, one.shape) for one in example]
        loss = work.model(flags, self._layers)(*batch)
        gradients = tf.gradients(loss, self._layers.variables)
        with tf.control_dependencies([self._layers.update(gradients)]):
            return batch, tf.identity(loss), given

    def weights(self):
        return self._layers.named()

    def arrays(self):
        return self._layers.arrays(self._session.run)

    def __call__(self, wanted):
        return self._train(*next(self.feed))

    def fetch(self, loss):
        return loss.item()


class Coordinator(contract.Step):
    """It reads all batches, and hands one to each worker in an iteration; it waits for them where a
    loss is wanted.
    """

    def __init__(self, backend, work):
        self._backend, self._workers = backend, backend.place.world_size
        self._server = _server("worker", 0, work.flags.threads)
        self.feed = _Dealt(backend, work, (0, 1))
        resolvers = tf.distribute.cluster_resolver
        resolver = resolvers.SimpleClusterResolver(_cluster(), rpc_layer="grpc")
        backend.gather("workers are there")
        strategy = tf.distribute.ParameterServerStrategy(resolver)
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

        def make(name, size):
            return tf.Variable(np.zeros(size, np.float32), name=name)

        with strategy.scope():
            self._layers = Shared(work, make)
            for variable, start in self._layers.started():
                variable.assign(start)
        self._model = work.model(work.flags, self._layers)
        self._first = True

    @tf.function(autograph=False)
    def _train(self, *batch):
        variables = self._layers.variables
        with tf.GradientTape() as tape:
            loss = self._model(*batch)
        with tf.control_dependencies([self._layers.update(tape.gradient(loss, variables))]):
            return tf.identity(loss)

    def weights(self):
        return self._layers.named()

    def arrays(self):
        return self._layers.arrays(lambda parts: [one.numpy() for one in parts])

    def __call__(self, wanted):
        losses = []
        for _ in range(self._workers):
            losses.append(self._coordinator.schedule(self._train, args=next(self.feed)))
            if self._first:  # of which the loss must be that of the start weights
                self._coordinator.join()
                self._first = False
        return losses[0]

    def fetch(self, loss):
        self.finish()
        return float(loss.fetch())

    def finish(self):
        self._coordinator.join()
        self._backend.gather("all is trained")


class _Dealt(contract.Feed):
    """Batches of which each iteration takes one for every rank."""

    def counted(self, batches):
        return self._counts.after(batches * self._backend.place.world_size)


class Worker(contract.Step):
    """A worker of a ParameterServerStrategy, which trains when rank 0 tells it to."""

    model_part = "none"
    feed = contract.NoFeed()

    def __init__(self, backend, work):
        self._backend = backend
        self._server = _server("worker", backend.place.rank, work.flags.threads)
        backend.gather("workers are there")

    def weights(self):
        return ()

    def __call__(self, wanted):
        return None

    def fetch(self, loss):
        self.finish()

    def finish(self):
        self._backend.gather("all is trained")
