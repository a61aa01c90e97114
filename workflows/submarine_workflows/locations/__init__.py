"""Read and write notebooks and results at URLs."""
