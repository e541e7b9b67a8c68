"""Models that are one layer after another, which can be cut between any two of them."""

from torch import nn


class Layered(nn.Module):
    """Takes a batch of samples and labels, returns their mean loss.

    A subclass has loss(outputs, labels), without weights, and layers(flags): for each layer what
    the recipe's names of its weights begin with, "" if it has none, and what makes it.
    """

    def __init__(self, flags):
        super().__init__()
        self.all = nn.Sequential(*(make() for _, make in self.layers(flags)))

    def forward(self, samples, labels):
        return self.loss(self.all(samples), labels)

    @classmethod
    def stage(cls, flags, cuts, number):
        """A stage of a pipeline: takes what the stage before returns, the first one samples.

        Only this one is made, for no process has memory for the others.
        """
        names, makers = zip(*cls.layers(flags))
        # A layer has several weights, of which only the first may begin a stage.
        begins = [0, *(names.index(_layer_of(weight, names)) for weight in cuts), len(names)]
        return nn.Sequential(*(make() for make in makers[begins[number] : begins[number + 1]]))


def _layer_of(weight, names):
    return next(name for name in names if name and weight.startswith(f"{name}."))
