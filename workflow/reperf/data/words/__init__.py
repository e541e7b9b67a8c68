"""Words: text as the numbers of its frequent words, of which skip-gram pairs are made."""
