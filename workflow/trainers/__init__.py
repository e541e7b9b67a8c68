"""Everything that runs inside a framework's environment: Python 3.7 or later, nothing of reperf.

A system's system.yaml names a backend, a model and a reader of these packages; train.py trains with
them. All that these import, directly or not, decides the system's runs.
"""
