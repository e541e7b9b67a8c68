"""Hugging Face transformers' BERT as its users train it, on a batch and from weights of ours.

benchmarks/training.py starts it beside our trainer, with the same flags. It says what a trainer of
ours says, by the same step log, and needs torch and transformers.
"""

import torch
from huggingface_shared import UNMASKED, config_of, masked_batch, start_weights
from peer import Model, adamw, run
from torch import nn
from torch.nn import functional
from trainers.recipes import bert
from transformers import BertForPreTraining
from transformers import __version__ as version


def make(flags, _) -> Model:
    network = make_model(flags).to(flags.device)
    batch = {name: array.to(flags.device) for name, array in make_batch(flags).items()}
    name, optimizer = f"transformers {version}", adamw(network, bert, flags)
    return Model(network, lambda model: model(**batch), optimizer, name, flags.compile)


class OfMaskedTokens(nn.Module):
    """The loss of transformers' BERT, with the logits of masked tokens alone, as ours has it.

    By itself transformers computes those of all tokens, some six times as many.
    """

    def __init__(self, theirs: BertForPreTraining) -> None:
        super().__init__()
        self.theirs = theirs

    def forward(
        self,
        places: torch.Tensor,
        labels: torch.Tensor,
        next_sentence_label: torch.Tensor,
        **inputs: torch.Tensor,
    ) -> torch.Tensor:
        """The loss of a batch.

        Args:
            places: [N, M] the masked tokens of each sentence; what is over is 0.
            labels: [N, M] the words there; UNMASKED where a place is over.
            next_sentence_label: [N]
            inputs: what transformers calls by these names, [N, S] each.
        """
        hidden, pooled = self.theirs.bert(**inputs, return_dict=False)
        masked = hidden.gather(1, places[..., None].expand(-1, -1, hidden.shape[-1]))
        words = self.theirs.cls.predictions(masked)
        follows = self.theirs.cls.seq_relationship(pooled)
        of_words = functional.cross_entropy(
            words.flatten(0, 1).float(), labels.flatten(), ignore_index=UNMASKED
        )
        return of_words + functional.cross_entropy(follows.float(), next_sentence_label)


def make_model(flags) -> OfMaskedTokens:
    """The model of a shape, with its own start weights replaced by ours."""
    model = BertForPreTraining(config_of(flags))
    theirs = dict(model.named_parameters())
    with torch.no_grad():
        for name, value in start_weights(flags).items():
            theirs.pop(name).copy_(torch.from_numpy(value))
    if theirs:
        raise ValueError(f"weights that ours lacks: {', '.join(theirs)}")
    return OfMaskedTokens(model)


def make_batch(flags) -> dict[str, torch.Tensor]:
    """Our synthetic batch as OfMaskedTokens takes it."""
    return {name: torch.from_numpy(array).long() for name, array in masked_batch(flags).items()}


if __name__ == "__main__":
    run(bert, make)
