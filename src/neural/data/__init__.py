"""Raw data → named arrays that fit a network.

sources/              one file per kind of data: how it is recognised, how it is read
source.py             base class of the sources; `Examples`, the result of reading
loading.py            the `data` setting → the source that reads it
array_names.py        array names (x, y, mask, source, target), and their splits by suffix
array_examples.py     named arrays → examples
class_labels.py       words as labels → class numbers
table_cells.py        tables of any origin, by column
table_columns.py      the settings of columns: features, target, identifier, group
table_preprocessing.py  columns → numbers, fitted on training rows and saved with the run
table_examples.py     tables → examples
splits.py             which examples train, validate and test; folds
input_checks.py       inputs checked against the network
targets.py            labels checked against the loss; scores of predictions
dataset.py            checked examples, split and taken in batches
sampler.py            which examples make up a batch
duplicates.py         validation examples that are also training examples
text_encoding.py      characters → ids; text → next-character examples
class_folders.py      one folder per class
image_conversion.py   images → arrays of the size that the network takes
numpy_files.py        `.npz` and `.npy` files of any origin, read safely
safe_pickle.py        plain data from a pickle, without running it
downloads.py          datasets by name: cache, checksums, resuming
optional_packages.py  packages that only some sources need
"""
