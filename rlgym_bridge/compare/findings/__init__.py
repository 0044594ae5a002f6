"""Judge what differs between recordings and the simulation."""
