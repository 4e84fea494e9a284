"""A stand-in for Pillow: what is used of it, under its names, and nothing else."""
