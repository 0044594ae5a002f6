"""Input of users: files of settings, their checks, and modules of their own."""
