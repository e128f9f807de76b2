"""Run folders → what they say: analysis/, quality/ of generated text, plots. Reads folders, knows no training."""
