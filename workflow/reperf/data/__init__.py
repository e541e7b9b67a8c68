"""Images or text in, record files out: the embedded sets, the record formats, their manifests.

Nothing here imports the configuration, so that editing it converts no data set again.
"""

RECORD_FORMATS = ("tfrecord", "ofrecord", "recordio")
"""Their names in the configuration and in paths."""
TEXT_FORMATS = ("tfrecord", "ofrecord")
"""Those that can hold text."""
