"""Seat the policy in training, its older versions and rivals in matches."""
