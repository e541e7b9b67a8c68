"""Everything that runs inside a framework's environment: Python 3.7 or later, nothing of reperf.

A system's workflow/systems/<id>/<workload>.py puts together an engine, a model and an input from
these packages. All that it imports, directly or not, decides its runs.
"""
