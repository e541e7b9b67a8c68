"""What rules and steps rely on: the code behind a result, its seal, the work folder, the guard."""
