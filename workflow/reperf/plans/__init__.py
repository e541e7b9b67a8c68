"""Plans: what decides a run, a search, a data set or the pages of a suite, each in one file.

They are made from a checked report in memory, before Snakemake makes its graph, and written when
its first job is about to start. Equal content is an equal file.
"""
