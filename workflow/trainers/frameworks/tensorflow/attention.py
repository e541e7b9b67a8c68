"""Attention of several heads in TensorFlow 2 and 1.15; features of all tokens are rows."""

import tensorflow as tf


def heads_of(rows, length, parts, heads):
    """What a fused linear layer gave, [N S, parts H], as `parts` of [N, heads, S, H / heads]."""
    size = int(rows.shape[-1]) // (parts * heads)
    fused = tf.reshape(rows, [-1, length, parts, heads, size])
    return tf.unstack(tf.transpose(fused, [2, 0, 3, 1, 4]), parts)


def attended(query, key, value, mask, dropout):
    """Features [N S, H] of what each query attends to, out of [N, heads, S, H / heads].

    The mask is added to scores; `dropout` takes and returns attention's weights.
    """
    heads, size = (int(extent) for extent in (query.shape[1], query.shape[3]))
    scores = tf.matmul(query * size**-0.5, key, transpose_b=True) + mask
    found = tf.matmul(dropout(tf.nn.softmax(scores)), value)
    return tf.reshape(tf.transpose(found, [0, 2, 1, 3]), [-1, heads * size])
