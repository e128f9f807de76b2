"""Text segmentation: find where one segment of a document ends and the next begins.

Documents: document.py (a text as a list of elements with its segments), text_splitting.py (text →
sentences or lines), reader.py and data/ (one file per input format), collection.py (the training,
validation and test documents of an experiment), duplicates.py (documents that occur twice),
boundary_encoding.py (boundaries ↔ segment lengths ↔ labels).

Features: tokenization.py (words and stems of every element), feature.py and features/ (one file per
group of columns), feature_cache.py (all columns of a document, cached on disk), kernels.py
(numba loops).

Training: settings.py (settings and presets), model.py (BiLSTM with attention), model_builder.py
(settings → model), collate.py (examples and batches), losses.py, task.py.

Prediction: pipeline.py (model, features and calibration; shipped/ has a trained one), prediction.py
(`neural predict`), inference.py (logits, probabilities, thresholds), decoding.py (probabilities →
boundaries), probability.py, calibrator.py and calibration/ (logits → calibrated probabilities),
calibration_selection.py (which calibrator), calibration_error.py (ECE, reliability diagrams).

Evaluation: evaluation_data.py (held-out documents), evaluation.py (`neural evaluate`), metric.py
and metrics/, baseline.py and baselines/ (one file each), score_table.py (documents × segmenters →
scores), confidence_intervals.py (jackknife over documents and sources).
"""
