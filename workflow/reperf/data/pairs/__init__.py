"""Pairs of sentences, of which one translates the other: both become ids of one vocabulary."""
