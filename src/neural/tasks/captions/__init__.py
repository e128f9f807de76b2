"""Captioning: describe pictures, with attention to one region of the picture per word."""
