"""Attention as a user writes it, in modules whose helpers are called like ours but do other things."""
