"""Put bots into a match, and read what each reported about itself."""
