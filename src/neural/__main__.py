"""`python -m neural`."""

from neural.cli.main import main

main(prog_name="neural")
