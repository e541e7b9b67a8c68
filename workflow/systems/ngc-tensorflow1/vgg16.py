"""Train VGG16 as NVIDIA's TensorFlow 1 container does: Horovod, tf.data or DALI."""

from trainers.frameworks.tensorflow.engine1 import run
from trainers.frameworks.tensorflow.inputs import dali_images, tfrecord_images
from trainers.frameworks.tensorflow.vgg16 import VGG16
from trainers.recipes import vgg16

if __name__ == "__main__":
    run(vgg16, VGG16, tfrecord_images, dali_images)
