"""Show recordings: write files for the Rerun viewer, and start it."""
