"""One module per verb: called by the command line, by `neural.*` and by child processes."""
