"""Clicks: advertisements shown, as Criteo's display advertising challenge describes them."""
