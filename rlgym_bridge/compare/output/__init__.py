"""Write what a comparison found as pages, plots and settings."""
