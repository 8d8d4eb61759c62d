"""Tools of the workshop: they are not part of the program."""
