"""What a workload is, in numbers on which every framework must agree; docs/add-a-workload.md."""
