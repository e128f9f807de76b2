"""Used by all folders: registries, diagnostics, settings, YAML with positions, files. No torch."""
