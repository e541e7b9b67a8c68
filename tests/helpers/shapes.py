"""Small shapes, at which a workload trains in seconds."""

TINY_BERT = {
    "sequence_length": 32,
    "max_predictions": 5,
    "layers": 2,
    "hidden": 128,
    "heads": 2,
    "intermediate": 512,
    "vocabulary": 1000,
    "positions": 64,
}

TINY_GPT2 = {"context": 32, "layers": 2, "hidden": 128, "heads": 2, "vocabulary": 1000}
TINY_WORD2VEC = {"vocabulary": 1500, "width": 8, "window": 2, "negatives": 3}

TINY_TRANSFORMER = {
    "longest": 32,
    "layers": 2,
    "hidden": 128,
    "heads": 2,
    "intermediate": 256,
    "vocabulary": 500,
}

TINY_LLAMA = {
    "context": 32,
    "layers": 2,
    "hidden": 128,
    "heads": 4,
    "key_heads": 2,
    "intermediate": 256,
    "vocabulary": 1000,
    "stretch": 8,
    "embeddings": 2,
}
