"""How samples get from files to a rank: readers, decoders, crops."""
