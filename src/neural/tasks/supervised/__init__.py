"""A `.neural` program trained on arrays, tables or images."""
