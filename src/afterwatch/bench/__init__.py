"""Figures: retrieval, precision, scale and sameness, computed by whoever doubts them."""
