"""One folder per framework: engine.py trains any model; inputs.py, and one module per model."""
