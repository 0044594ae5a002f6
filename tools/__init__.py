"""Programs for those who make this project: measurements, pictures of the docs, checks before a release."""
