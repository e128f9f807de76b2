"""Pictures as regions, captions as words: scenes.py draws them, data.py holds and reads them, captioner.py learns."""
