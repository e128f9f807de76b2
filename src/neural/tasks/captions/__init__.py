"""Captioning: describe pictures region by region."""
