"""What should happen: pure functions, `now` is an argument. No I/O, no clock, no randomness."""
