"""Where one part of a text ends and the next begins: the pieces that the task `segmentation` is made of.

Texts: document.py (a text as elements, with the parts they belong to), elements.py, sentences.py, wrapping.py and
headings.py (how it gets its elements), reading.py (files of any encoding), data/ (one file per kind of file),
collection.py and compose.py (the documents of an experiment), duplicates.py (documents that occur twice), masses.py
(the two ways to write a segmentation).

Numbers: words.py, stems.py, terms.py, tags.py, rhymes.py and occurrences.py (what is in an element), similarity.py (how
alike elements are), posterior.py (where vocabularies change), features/ (one file per group of columns), described.py
(all of them, kept on disk).

Learning: settings.py, presets.py, network.py, prepared.py, packed.py, losses.py, predicted.py, stretches.py (a book
through a network).

Answers: calibration/ (scores → probabilities that mean something), calibration_choice.py (which of them),
calibration_file.py (what a run keeps of it), decode.py (probabilities → the best segmentation under a least and a most
length), least_pk.py (the one with the least expected Pk).

Judgement: metrics/ and baselines/ (one file each), scores.py (documents × segmenters → a table), jackknife.py (where
its intervals come from) and clusters.py (what they are over), calibration_scores.py, expected_error.py and
reliability.py (how good probabilities were).
"""
