"""One folder per framework: backend.py trains any model; readers, and one module per model."""
