"""What a kind of data adds to the configuration of a data set."""

from typing import ClassVar

from reperf.faults import Model


class KindKeys(Model):
    """The keys that only sets of one kind have.

    One is called as the kind: it says where the user's input lies, None where the embedded set is
    made. Two kinds have no key in common. A data set is all of them, so it is asked as one of its
    own kind: `KEYS[kind].shape_of(data)`.

    Attributes:
        embedded: what the embedded set is called, below data/<set>.
        holds_folders: whether systems may read its input as it lies, unconverted.
    """

    embedded: ClassVar[str]
    holds_folders: ClassVar[bool] = False

    def check_keys(self) -> None:
        """Refuse values that do not go together.

        Raises:
            ValueError: names the key, and what is allowed.
        """

    def shape_of(self) -> dict[str, int]:
        """What a set decides of the shape of a workload that trains on it."""
        return {}

    def least_shape_of(self) -> dict[str, int]:
        """What a shape must have at least, for a workload to train on a set."""
        return {}

    def least_batch_of(self) -> int:
        """Samples that a batch must have at least, for a workload to train on a set."""
        return 1
