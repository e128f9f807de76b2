"""Text segmentation: find where one segment of a document ends and the next begins.

A document is a sequence of elements (sentences or lines). A boundary is an element where a segment
begins.

Documents: document.py (the class of documents), structure.py (text → elements with their layout)
with blocks.py, plain_blocks.py, markdown_blocks.py, html_blocks.py, line_wrapping.py and
speaker_turns.py, text_splitting.py (sentences), rendering.py (parts → text in many styles),
reader.py and data/ (one file per input format), collection.py (the training, validation and test
documents of an experiment), duplicates.py (documents that occur twice), boundary_encoding.py
(boundaries ↔ segment lengths ↔ labels).

Features: tokenization.py (words and stems of every element), feature.py and features/ (one file per
group of feature columns), feature_cache.py (all feature columns of a document, cached on disk),
kernels.py (loops over words: native kernels) and plain_kernels.py (the same in NumPy and Python),
character_classes.py (letters and digits for kernels).

Training: settings.py (settings and presets), model.py (BiLSTM with attention), model_builder.py
(settings → model), collate.py (examples and batches), losses.py, task.py (the training task).

Prediction: pipeline.py (model, features and calibration; shipped/ has a trained one),
numpy_segmenter.py (the model without torch), prediction.py
(`neural predict`), inference.py (logits, probabilities, thresholds), decoding.py (probabilities →
boundaries), probability.py (log loss, Brier score, binning), calibrator.py and calibration/
(logits → calibrated probabilities), calibration_selection.py (choice of a calibration method),
calibration_error.py (ECE, reliability diagrams).

Evaluation: evaluation_data.py (held-out documents), evaluation.py (`neural evaluate`), metric.py
and metrics/ (one file each), baseline.py and baselines/ (one file each), score_table.py (scores of
the model and of all baselines), source_clusters.py (sources that documents share).
"""
