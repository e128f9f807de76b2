"""What users of Keras, PyTorch and Hugging Face write, recognized and translated.

`nn.Linear(64, 10)` becomes `Dense(10)`, `epochs = 5` a key of `train { … }`. Each is reported as an
error with a fix, and the rest of the checker sees the network that is meant, so that one foreign
name hides no other error. Only what is written is translated, and what the name of a layer says
(`BertLayer` has `norm="post"`): other arguments have the defaults of this language. names.py,
argument_names.py and training_names.py have the names, as data; text.py recognizes Python and JSON.
"""
