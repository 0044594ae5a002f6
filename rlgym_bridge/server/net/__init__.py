"""Serve clients over TCP: their connections, seats, messages and processes, tick by tick."""
