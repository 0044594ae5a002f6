"""Recordings as pictures: a file for Rerun's viewer, and the viewer."""
