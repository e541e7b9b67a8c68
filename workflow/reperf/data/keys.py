"""What a kind of data adds to the configuration of a data set."""

from typing import Any, ClassVar

from reperf.faults import Model


class KindKeys(Model):
    """The keys that only sets of one kind have.

    One is called as the kind: it says where the user's input lies, None where the embedded set is
    made. Two kinds have no key in common.

    Attributes:
        embedded: what the embedded set is called, below data/<set>.
        holds_folders: whether systems may read its input as it lies, unconverted.
    """

    embedded: ClassVar[str]
    holds_folders: ClassVar[bool] = False

    @classmethod
    def check_keys(cls, data: Any) -> None:  # noqa: ANN401 - a Data, whose keys they are
        """Refuse values that do not go together.

        Raises:
            ValueError: names the key, and what is allowed.
        """

    @classmethod
    def shape_of(cls, data: Any) -> dict[str, int]:  # noqa: ANN401 - a Data, whose keys they are
        """What a set decides of the shape of a workload that trains on it."""
        return {}

    @classmethod
    def least_shape_of(cls, data: Any) -> dict[str, int]:  # noqa: ANN401 - a Data, whose keys they are
        """What a shape must have at least, for a workload to train on a set."""
        return {}

    @classmethod
    def least_batch_of(cls, data: Any) -> int:  # noqa: ANN401 - a Data, whose keys they are
        """Samples that a batch must have at least, for a workload to train on a set."""
        return 1
