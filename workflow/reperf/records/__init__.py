"""What is known of runs and machines: run records, the keys of cells, the doctor's diagnosis."""
