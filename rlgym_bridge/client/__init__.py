"""Taking part in a match over RLBot's protocol: connections, seats, messages; packets are read elsewhere."""
