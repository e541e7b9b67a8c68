"""Train ResNet-50 with TensorFlow 2: a distribution strategy, tf.data."""

from trainers.frameworks.tensorflow.engine2 import run
from trainers.frameworks.tensorflow.inputs import tfrecord_images
from trainers.frameworks.tensorflow.resnet50 import ResNet50
from trainers.recipes import resnet50

if __name__ == "__main__":
    run(resnet50, ResNet50, tfrecord_images)
