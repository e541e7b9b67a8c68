"""What rules and scripts rely on: the code behind a result, its seal, the hold on the folder."""
