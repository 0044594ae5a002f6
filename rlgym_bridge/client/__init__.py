"""Connect to RLBot servers and take part in their matches; packets are decoded elsewhere."""
