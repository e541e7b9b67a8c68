"""Images in, record files out: the embedded set, the three record formats, their manifest.

Nothing here imports the configuration, so that editing it does not convert a data set again.
"""

RECORD_FORMATS = ("tfrecord", "ofrecord", "recordio")
"""Their names in the configuration and in paths."""
