"""Launchers for frameworks that bring none, or one that needs preparation."""
