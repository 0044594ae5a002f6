"""Save, load, check and import policy folders."""
