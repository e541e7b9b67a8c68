"""TensorFlow 1.15 with Horovod, or TensorFlow 2, as trainers.contract.trial tries them."""

from importlib import import_module

import tensorflow as tf

_MODULE = "trial1" if tf.__version__.startswith("1.") else "trial2"

Devices = import_module("trainers.frameworks.tensorflow." + _MODULE).Devices
