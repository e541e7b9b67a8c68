"""A folder a framework: engine.py, which trains any model, inputs.py, and a module a model."""
