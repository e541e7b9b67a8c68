"""Images on their way into records: the embedded set, the checks, the three formats."""
