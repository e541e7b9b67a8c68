"""What every trainer is asked, says and checks; needs only the standard library and numpy."""
