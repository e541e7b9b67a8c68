"""The steps of the workflow, a module each: what a rule calls.

A step knows where its inputs and outputs lie, reads its plan, calls one function of the library,
and notes what it has made. The shell lines of the rules say no more than `reperf.steps <step>` and
the suite, the data set or the build.
"""
