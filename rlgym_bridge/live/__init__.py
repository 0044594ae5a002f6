"""The live side: RLBot v5 packets in, controller states out."""
