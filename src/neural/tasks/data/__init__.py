"""Raw data → named arrays that fit a network.

sources/      one file per kind of data: what it looks like, how it is read
source.py     what every source promises
find.py       what the user wrote → the source that reads it
named.py      x, y, mask, source, target: what arrays may be called
check.py      the inputs against the network
targets.py    the labels against the loss, and how predictions are scored
split.py      what is held out
order.py      which examples make which batch
column.py     arrays → tensors, a batch at a time
alphabet.py   characters → ids; windows.py: text → next-character examples
folders.py    one folder per class; pixels.py: pictures → arrays
downloads.py  data sets by name: a cache, checksums, resuming
"""
