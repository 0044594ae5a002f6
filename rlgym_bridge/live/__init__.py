"""Play a match over RLBot's v5 protocol: the bot process of a policy."""
