"""The training loop, of every framework and every way of training."""

import itertools
import os
import platform
from importlib import import_module

from trainers.contract import process, settings
from trainers.contract.affinity import keep_near_gpu
from trainers.contract.flags import parse_flags, parse_names
from trainers.contract.precision import precision_of
from trainers.contract.recipe import at_scale, dropout_of, optimizer_of, recipe_named
from trainers.contract.steplog import Refused, StepLog
from trainers.contract.weights import Watched, initial_weight

SETTLING = 2  # iterations in which frameworks may ask for too much memory, to see what is fastest


class Work:
    """What is to be trained: the recipe's numbers as the flags want them.

    Optimizer, rate and decay are for gradients of a loss that was multiplied by precision.factor.
    """

    def __init__(self, recipe, flags, global_batch, computes):
        self.recipe, self.flags = recipe, flags
        self.shapes = recipe.weight_shapes(flags.shape)
        self.dropout = dropout_of(recipe, flags)
        self.precision = precision_of(flags, computes)
        asked, rate = optimizer_of(recipe, flags), recipe.learning_rate(global_batch)
        self.optimizer, self.rate = at_scale(asked, rate, self.precision.factor)

    @property
    def model(self):
        """What makes the model; the framework's backend says what it takes and returns."""
        return self._found(self.flags.model)

    @property
    def batches(self):
        """What reads data: it returns, for flags, reader, readers and device, endless batches."""
        return self._found(self.flags.batches)

    def part(self, name, default):
        """What the system brings in place of what the framework has, by its name in system.yaml."""
        return self._found(self.flags.part[name]) if name in self.flags.part else default

    def step(self, backend):
        """The Step that trains; one that shares the model is the system's own part."""
        asked = [kind for kind in ("pipeline", "shard", "tensor") if getattr(self.flags, kind)]
        for kind in asked:
            if kind not in self.flags.part:
                raise Refused(f"--{kind}: the system has no part that trains like that")
        if len({self.flags.part[kind] for kind in asked}) > 1:
            raise Refused(f"--{' and --'.join(asked)}: the system has no part that does both")
        name, usual = (asked[0], None) if asked else ("step", type(backend).step)
        return self.part(name, usual)(backend, self)

    def named(self, weights):
        """A whole model's weights, which have the recipe's order, by the recipe's names."""
        weights = list(weights)
        if len(weights) != len(self.shapes):
            has = f"the model has {len(weights)} weights, {self.flags.workload}"
            raise Refused(f"{has} has {len(self.shapes)}")
        return dict(zip(self.shapes, weights))

    def start(self, name, index=None):
        """The float32 array from which a weight starts, or a part: a slice for each dimension."""
        return initial_weight(self.recipe, self.flags, name, self.shapes[name], index)

    def decay(self, name):
        return self.optimizer.weight_decay if self.recipe.decays(name) else 0.0

    def groups(self, weights):
        """Weights by name as optimizers take them: dictionaries of "params" and "weight_decay"."""
        groups = {}
        for name, weight in weights.items():
            groups.setdefault(self.decay(name), []).append(weight)
        return [{"params": own, "weight_decay": decay} for decay, own in groups.items()]

    def _found(self, name):
        """What a name such as resnet50.ResNet50 says in the framework's folder; imported now."""
        module, _, name = name.rpartition(".")
        folder = self.flags.backend.split(".")[0]
        return getattr(import_module(f"trainers.frameworks.{folder}.{module}"), name)


def run(argv=None):
    """Train as flags say; the process ends with this."""
    recipe, flags = _parsed(argv)
    place = _before(flags).PLACE
    flags.cpus = keep_near_gpu(place.local_rank) if flags.device == "cuda" else None
    log = StepLog(recipe, flags, place.rank, place.world_size)
    with log.to_the_end():
        backend = backend_of(flags)
        train(backend, Work(recipe, flags, log.global_batch, backend.computes), log)


def serve():
    """Be a parameter server, as the system's part `server` is one, until somebody ends it."""
    recipe, flags = _parsed()
    _prepared(flags)
    backend = import_module(f"trainers.frameworks.{flags.backend}").Backend
    trainers = 1 if flags.own_time else int(os.environ["WORLD_SIZE"])
    work = Work(recipe, flags, flags.batch_size * trainers, backend.computes)
    work.part("server", None)(work)


def _parsed(argv=None):
    names, others = parse_names(argv)
    recipe = recipe_named(names.recipe)
    flags = parse_flags(recipe, others)
    vars(flags).update(vars(names))
    return recipe, flags


def backend_of(flags):
    """The flags' backend, for which the framework is only now imported."""
    place = _prepared(flags)
    return import_module(f"trainers.frameworks.{flags.backend}").Backend(flags, place)


def _prepared(flags):
    """This process's Place, ready for the framework's import: on cores of its own, for one."""
    before = _before(flags)
    if flags.device == "cpu" and "SERVER" not in os.environ:  # a server has been given its own
        # The cores after the ranks' cores may belong to the node's servers.
        place = before.PLACE
        number = place.local_rank if "SERVERS" in os.environ else place.rank
        process.keep_to_own_cores(number, flags.threads)
    getattr(before, "prepare", lambda _: None)(flags)
    return before.PLACE


def _before(flags):
    """The module of what to know and to do before the framework is imported."""
    return import_module(f"trainers.frameworks.{flags.backend.split('.')[0]}.before")


def train(backend, work, log):
    flags = work.flags
    meeting = backend.meeting if flags.own_time else None
    if flags.own_time and meeting is None and backend.place.world_size > 1:
        raise Refused("the ranks keep their own time, and their launcher says not where they meet")
    step = work.step(backend)
    if "optimizer" in flags.part:
        settings.switched("optimizer", step.optimizer)
    if flags.accumulation > 1 and not step.accumulates:
        raise Refused(f"--accumulation is {flags.accumulation}; allowed here: 1")
    watched = Watched(log, step.arrays)
    versions = backend.versions()
    parts = dict(backend.gather([step.model_part, step.size()]))
    framework = " ".join(next(iter(versions.items())))
    versions = {"python": platform.python_version(), **versions}
    versions.update({"optimizer": step.optimizer} if step.optimizer else {})
    devices = backend.gather(backend.device_name)
    log.configured(sum(parts.values()), framework, versions, devices, work.precision)
    if work.dropout:
        log.without_dropout(step.without_dropout())
    step.begin()
    for iteration in _counted(flags.iterations, meeting):
        wanted = log.prints(iteration)
        loss = step(wanted)
        if wanted:
            loss = step.fetch(loss)  # which waits for the whole iteration
            counted = step.feed.counted(iteration * flags.accumulation)
            log.step(iteration, loss, step.feed.waited(), **counted)
        if iteration == 1 and meeting is not None:
            if not wanted:
                step.fetch(loss)
            meeting.gather("started")
        if iteration == SETTLING:
            backend.settled()
    step.finish()
    ends = backend.gather([step.model_part, watched.digest()])
    peaks, retries = backend.gather(backend.peak_memory()), backend.allocation_retries()
    changes = watched.changes(backend, step.model_part)
    more = {"allocation_retries": None if retries is None else backend.gather(retries)}
    if backend.place.world_size > 1 and not flags.own_time:
        # alone() comes last: it may spoil the model, takes a batch, and may take memory.
        waited = step.feed.waited()
        log.ranks(backend.gather([step.alone(), waited]))
    log.finished(ends, peaks, changes, peak_memory_is=backend.peak_memory_is, **more)
    backend.leave()


def _counted(planned, meeting):
    """Iterations from 1: so many and, of ranks that meet, more until all have made as many."""
    # Without those that train on, the last one would be faster.
    yield from range(1, planned + 1)
    if meeting is None:
        return
    meeting.enter("ended")
    for iteration in itertools.count(planned + 1):
        if meeting.entered() is not None:
            return
        yield iteration
