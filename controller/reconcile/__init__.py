"""When things happen and in which order: the loop and its steps. Deciding is done in `decide`."""
