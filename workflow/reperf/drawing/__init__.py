"""The figures of the report, and how they name and colour what they show."""
