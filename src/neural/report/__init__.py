"""Runs as page data, plots and one HTML file."""
