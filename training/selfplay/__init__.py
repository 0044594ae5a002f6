"""Seat the policy in training, its older versions and opponents in matches."""
