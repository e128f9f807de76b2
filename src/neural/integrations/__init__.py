"""The segmenter in the pipelines of other libraries, one module per library.

from neural.integrations.langchain import NeuralTextSplitter      langchain-text-splitters
from neural.integrations.llama_index import NeuralNodeParser      llama-index-core
from neural.integrations.haystack import NeuralDocumentSplitter   haystack-ai
"""
