"""Language models on characters or bytes."""
