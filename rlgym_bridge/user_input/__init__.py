"""What users write: files of settings, their checks, and modules of their own."""
