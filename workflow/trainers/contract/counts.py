"""What a rank has trained on besides samples, such as tokens."""

from collections import deque


class Counts:
    """Adds up what the batches of a rank count, on the host, and lags behind no device."""

    def __init__(self, recipe):
        self._of = getattr(recipe, "counts", None)
        self._read = deque()  # of each batch that was read and that is not in the sum yet
        self._summed = 0
        self._sum = {}
        self._each = None

    def of(self, batches):
        """The same batches, each counted when it is taken, which may be ahead of training."""
        return batches if self._of is None else self._counted(batches)

    def _counted(self, batches):
        for batch in batches:
            self._read.append(self._whole(batch))
            yield batch

    def _whole(self, batch):
        return {unit: int(count) for unit, count in self._of(batch).items()}

    def always(self, batch):
        """Take it that each iteration trains on this one batch."""
        self._each = self._whole(batch) if self._of else {}

    def after(self, iteration):
        """What was trained on up to an iteration, no earlier one than before: {"tokens": 4096}."""
        if self._each is not None:
            return {unit: count * iteration for unit, count in self._each.items()}
        while self._read and self._summed < iteration:
            for unit, count in self._read.popleft().items():
                self._sum[unit] = self._sum.get(unit, 0) + count
            self._summed += 1
        return dict(self._sum)
