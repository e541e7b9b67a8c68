"""How samples get from files to a rank: readers, decoders, crops.

Each reader takes flags, rank and world_size, and most a device: a rank reads its own share of what
all ranks share, in an order, and with crops, that the seed and its number decide.
"""
