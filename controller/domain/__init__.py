"""What things are: frozen values in the words of the domain. No I/O, no clock, no randomness."""
