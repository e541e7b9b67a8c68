"""Optimizers for TensorFlow 2 and 1.15, of one kernel a weight, and loss scales for float16.

Keras 3 needs seven kernels. TensorFlow 1.15 has no AdamW, and its Adam's epsilon is another one.
"""

import tensorflow as tf

from trainers.contract.precision import DYNAMIC
from trainers.contract.recipe import AdamW
from trainers.frameworks.tensorflow.layers import own_variable


def make_update(work, weights):
    """What updates the weights: it takes gradients, averaged over the ranks and in the order of the
    weights, and returns the operation.
    """
    return (_make_adamw if isinstance(work.optimizer, AdamW) else _make_sgd)(work, weights)


def _make_sgd(work, weights):
    velocities = _zeros_like(weights)

    def update(gradients):
        applied, how = [], {"lr": work.rate, "momentum": work.optimizer.momentum}
        for (name, weight), velocity, gradient in zip(weights.items(), velocities, gradients):
            decay = work.decay(name)
            how["grad"] = gradient + decay * weight if decay else gradient
            held = {"var": weight.handle, "accum": velocity.handle}
            applied.append(tf.raw_ops.ResourceApplyMomentum(**held, **how))
        return tf.group(*applied)

    return update


def _make_adamw(work, weights):
    optimizer = work.optimizer
    first, second = _zeros_like(weights), _zeros_like(weights)
    betas = optimizer.beta1, optimizer.beta2
    powers = [tf.Variable(beta, trainable=False) for beta in betas]

    def update(gradients):
        if optimizer.clip is not None:
            gradients, _ = tf.clip_by_global_norm(gradients, optimizer.clip)
        power1, power2 = map(tf.identity, powers)
        how = {"lr": work.rate, "beta1_power": power1, "beta2_power": power2}
        how.update(zip(("beta1", "beta2"), betas))
        # The kernel adds its epsilon before it corrects the second moment, the paper afterwards.
        how["epsilon"] = optimizer.epsilon * tf.sqrt(1 - power2)
        applied = []
        for (name, weight), m, v, gradient in zip(weights.items(), first, second, gradients):
            before = []
            if work.decay(name):
                taken = work.rate * work.decay(name) * weight
                before = [tf.raw_ops.AssignSubVariableOp(resource=weight.handle, value=taken)]
            with tf.control_dependencies(before):
                held = {"var": weight.handle, "m": m.handle, "v": v.handle}
                applied.append(tf.raw_ops.ResourceApplyAdam(grad=gradient, **held, **how))
        # After it, because TensorFlow 1.15 lets a variable's value change under who reads it.
        with tf.control_dependencies(applied):
            raised = [
                tf.raw_ops.AssignVariableOp(resource=power.handle, value=value * beta)
                for power, value, beta in zip(powers, (power1, power2), betas)
            ]
        return tf.group(*raised)

    return update


def _zeros_like(weights):
    return [tf.Variable(tf.zeros_like(one), trainable=False) for one in weights.values()]


def make_scale(precision):
    """What has a `value`, by which a backend multiplies the loss, unscaled(gradients), which it
    averages, and guard(update, averages), which updates the weights and returns the operation.
    """
    if precision.loss_scale == DYNAMIC:
        return DynamicLossScale()
    return LossScale(precision.factor)


class LossScale:
    """A fixed factor that keeps float16 gradients from vanishing; 1 does nothing."""

    def __init__(self, value):
        self.value = value

    def unscaled(self, gradients):
        return gradients  # as the optimizer wants them: see contract.recipe.at_scale

    def guard(self, update, gradients):
        return update(gradients)


class DynamicLossScale:
    """A factor that halves when gradients overflow, and doubles after 2000 steps without.

    Source: Micikevicius et al., Mixed Precision Training (2017).
    """

    def __init__(self, start=2.0**15):
        self.value = own_variable(start)
        self._good_steps = own_variable(0.0)  # TensorFlow averages no whole numbers

    def unscaled(self, gradients):
        return [one / self.value for one in gradients]

    def guard(self, update, gradients):
        """Update the weights if all gradients are finite: averages, the same on all ranks."""
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(g)) for g in gradients])
        updated = tf.cond(finite, lambda: tf.group(update(gradients)), tf.no_op)
        good = tf.where(finite, self._good_steps + 1, 0.0)
        grows = tf.equal(good, 2000.0)
        factor = tf.where(finite, tf.where(grows, 2.0, 1.0), 0.5)
        return tf.group(
            updated,
            self._good_steps.assign(tf.where(grows, 0.0, good)),
            self.value.assign(self.value * factor),
        )
