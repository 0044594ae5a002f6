"""What tests and benchmarks share that is no part of the package."""
