"""What runs inside a framework's environment: Python 3.7 or later, nothing of reperf.

All that the backend, model and reader of a system import, directly or not, decides its runs.
"""
