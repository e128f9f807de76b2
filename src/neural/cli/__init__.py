"""One file per verb. Each defines `command`; heavy imports stay inside it."""
