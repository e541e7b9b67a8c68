"""All that runs inside a framework's environment: Python 3.7 on, and nothing of reperf.

A system's workflow/systems/<id>/<workload>.py puts an engine, a model and an input of these
packages together. What it imports, in turn, is what decides its runs.
"""
