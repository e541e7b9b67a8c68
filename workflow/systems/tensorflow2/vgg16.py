"""Train VGG16 with TensorFlow 2: a distribution strategy, tf.data."""

from trainers.frameworks.tensorflow.engine2 import run
from trainers.frameworks.tensorflow.inputs import tfrecord_images
from trainers.frameworks.tensorflow.vgg16 import VGG16
from trainers.recipes import vgg16

if __name__ == "__main__":
    run(vgg16, VGG16, tfrecord_images)
