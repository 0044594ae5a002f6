"""Read match files, and the bots and scripts that they name."""
