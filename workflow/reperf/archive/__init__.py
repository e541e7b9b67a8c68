"""Archives of suites: written, verified, and rebuilt from nothing but themselves."""
