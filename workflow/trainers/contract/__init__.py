"""What every trainer is asked, says and checks: the standard library and numpy alone."""
