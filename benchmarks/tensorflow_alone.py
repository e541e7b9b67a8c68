"""A process of servers_alone.py: TensorFlow's parameter servers, as its guides write them."""

import os

import tensorflow as tf
from servers_alone import EVERY, TRAINERS, Asked
from trainers.recipes import ctr

v1 = tf.compat.v1


def main():
    asked = Asked()
    cluster = tf.train.ClusterSpec(asked.addresses)
    if asked.role == "chief":
        coordinate(asked, cluster)
        os._exit(0)  # its goodbye waits for the workers
    # One thread for each operation, as reperf's trainers.
    config = v1.ConfigProto(intra_op_parallelism_threads=1)
    server = tf.distribute.Server(cluster, asked.role, asked.number, config=config)
    if asked.role == "worker" and asked.way == "session":
        train(asked, cluster, server)
    else:
        server.join()


def loss_of(weights, dense, slots, labels):
    table, *others = weights
    found = tf.nn.embedding_lookup(table, slots)
    x = tf.concat([tf.reshape(found, [-1, ctr.SLOTS * table.shape[1]]), dense], 1)
    for layer in range(0, len(others), 2):
        x = tf.matmul(x, others[layer]) + others[layer + 1]
        x = tf.nn.relu(x) if layer + 2 < len(others) else x
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)
    return tf.reduce_mean(losses)


def train(asked, cluster, server):
    own = f"/job:worker/task:{asked.number}"
    setter = v1.train.replica_device_setter(cluster=cluster, worker_device=own)
    with v1.Graph().as_default(), v1.device(setter):
        sizes = ctr.weight_shapes(asked.shape).items()
        weights = [v1.get_variable(name, size, use_resource=True) for name, size in sizes]
        given = [v1.placeholder(one.dtype, one.shape) for one in asked.batch]
        loss = loss_of(weights, *given)
        update = v1.train.GradientDescentOptimizer(asked.rate).minimize(loss)
        config = v1.ConfigProto(device_filters=["/job:ps", own])
        ready, start = v1.report_uninitialized_variables(), v1.global_variables_initializer()
        # With its usual 30 seconds, the first trainer would be done before the second one begins.
        manager = v1.train.SessionManager(ready_op=ready, recovery_wait_secs=1)
        if asked.number == 0:
            session = manager.prepare_session(server.target, start, config=config)
        else:
            session = manager.wait_for_session(server.target, config=config)
        for iteration in range(1, asked.iterations + 1):
            fed = dict(zip(given, asked.batch, strict=True))
            _, value = session.run([update, loss], fed)
            asked.say(iteration, value.item)


def coordinate(asked, cluster):
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, rpc_layer="grpc")
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        sizes = ctr.weight_shapes(asked.shape).values()
        weights = [tf.Variable(tf.random.uniform(size, -0.05, 0.05)) for size in sizes]

    @tf.function
    def step(batches):
        with tf.GradientTape() as tape:
            loss = loss_of(weights, *next(batches))
        of_table, *others = tape.gradient(loss, weights)
        changes = tf.IndexedSlices(asked.rate * of_table.values, of_table.indices)
        weights[0].scatter_sub(changes)
        for weight, gradient in zip(weights[1:], others, strict=True):
            weight.assign_sub(asked.rate * gradient)
        return loss

    batches = iter(
        coordinator.create_per_worker_dataset(
            lambda: tf.data.Dataset.from_tensors(asked.batch).repeat()
        )
    )
    for iteration in range(1, asked.iterations + 1):
        losses = [coordinator.schedule(step, args=(batches,)) for _ in range(TRAINERS)]
        if iteration == 1 or iteration % EVERY == 0:
            coordinator.join()
        asked.say(iteration, losses[0].fetch, TRAINERS)


if __name__ == "__main__":
    main()
