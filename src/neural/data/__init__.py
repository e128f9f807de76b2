"""Raw data → named arrays that fit a network.

sources/              one file per kind of data: how it is recognised, how it is read
source.py             base class of the sources; `Examples`, the result of reading
loading.py            the `data` setting → the source that reads it
array_roles.py        array names: x, y, mask, source, target
input_checks.py       inputs checked against the network
targets.py            labels checked against the loss; scores of predictions
dataset.py            checked examples, split and taken in batches
sampler.py            which examples are held out, and which make up a batch
duplicates.py         validation examples that are also training examples
text_encoding.py      characters → ids; text → next-character examples
class_folders.py      one folder per class
image_conversion.py   images → arrays of the size that the network takes
numpy_files.py        `.npz` and `.npy` files of any origin, read safely
safe_pickle.py        plain data from a pickle, without running it
downloads.py          datasets by name: cache, checksums, resuming
optional_packages.py  packages that only some sources need
"""
