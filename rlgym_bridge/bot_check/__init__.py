"""Check a bot's folder and play it, as RLBot would, in scenes that break bots."""
