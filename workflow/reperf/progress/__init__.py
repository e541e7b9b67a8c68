"""What people see while a workflow runs: which run of how many, what it gave, how long is left."""
