"""The run folder: all that training writes, and all that analyses and reports read.

run             `Run`: create, reopen or open a folder; log, save, finish
run_reader      `RunReader`: the reading half of `Run`
store           rows.sqlite: scalars, arrays, maps, events, metadata
checkpoint      checkpoints/: tensors (safetensors) and JSON
status, lock    status.json with the heartbeat; the lock of the only writer
folder          paths, small files and their checksums
metadata_schema checks of the metadata entries
environment     versions and machine, for environment.json
find            find run folders by name
sink, sinks/    other trackers that receive the scalars too
errors          RunError, and translation of operating-system and SQLite errors
"""
