"""Play many matches over the match server, several at once: for `league` and `stress`."""
