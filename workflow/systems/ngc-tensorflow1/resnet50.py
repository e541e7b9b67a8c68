"""Train ResNet-50 as NVIDIA's TensorFlow 1 container does: Horovod, tf.data or DALI."""

from trainers.frameworks.tensorflow.engine1 import run
from trainers.frameworks.tensorflow.inputs import dali_images, tfrecord_images
from trainers.frameworks.tensorflow.resnet50 import ResNet50
from trainers.recipes import resnet50

if __name__ == "__main__":
    run(resnet50, ResNet50, tfrecord_images, dali_images)
