"""Images or text in, record files out: the embedded sets, the record formats, their manifests.

Only `kinds`, which plans and scripts ask, knows the configuration.
"""

RECORD_FORMATS = ("tfrecord", "ofrecord", "recordio")
"""Their names in the configuration and in paths."""
TEXT_FORMATS = ("tfrecord", "ofrecord")
"""Those that can hold text."""
