"""A stream of tokens: text becomes ids, of bytes or by the user's byte-pair encoding."""
