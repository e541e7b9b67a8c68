"""What rules and scripts stand on: the code behind a result, its seal, the folder in use."""
