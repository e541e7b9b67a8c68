"""What people see while a workflow runs: which run of how many, its result, how long is left."""
