"""What the commands do, one module per command: called by cli/, Python and child processes."""
