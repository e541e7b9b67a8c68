"""Logs, whoever wrote them: from lines to the training runs that they tell of."""
