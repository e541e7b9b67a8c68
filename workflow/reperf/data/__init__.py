"""Images in, record files out: the embedded set, the three record formats, their manifest.

Nothing here imports the configuration, so that editing it converts no data set again.
"""

RECORD_FORMATS = ("tfrecord", "ofrecord", "recordio")
"""Their names in the configuration and in paths."""
