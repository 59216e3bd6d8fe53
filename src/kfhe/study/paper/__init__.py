"""What is about the paper: its datasets, the figures that it prints, its claims, and ours beside them."""
