"""For frameworks that bring no launcher of their own, or one that must be prepared."""
