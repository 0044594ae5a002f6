"""Write and read matches as MCAP files."""
