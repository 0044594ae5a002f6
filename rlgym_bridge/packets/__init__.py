"""Decode RLBot packets into a `MatchState`, and encode control rows as RLBot inputs."""
