"""Workloads, in the numbers on which all frameworks must agree; see docs/add-a-workload.md."""
