"""How samples come from files to a rank: readers, decoders, crops."""
