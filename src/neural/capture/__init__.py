"""Capture the attention of any torch model, measure it, and write it into a run folder.

watch                 `watch`: capture a model's attention in a block or on one batch
tracker               `AttentionTracker`: snapshots during training → run folder
hooks, recorder       intercept attention functions; turn their arguments into captured calls
threads               hooks and substituted functions that act in one thread only
attention_functions   one recording function per intercepted torch function
softmax_calls         attention written out with a softmax in the model's code
placement             positions of the queries among the keys
interventions         changes of heads: zero, scale, mean, patch, pattern
intervene             `intervene`: apply changes inside a block; `record_head_outputs`
output_editing        find head outputs inside attention functions, and put edited ones there
blocks                transformer blocks; changes of MLPs, layers and the residual stream
patching              replace the mechanism of an attention module: dense weights, head ablation
capture_result        `Capture`, `CapturedCall`: the result of a watch
attention_call        `AttentionCall`: queries, keys and mask of one call
dense_weights         calls of mechanisms that are not a softmax of dot products
attention_maps        `AttentionMaps`: weights written out, for reference definitions
measure, measures/    base classes and registry of measures
statistics            all measures in one pass; compiled_statistics: the pass in native code
head_divergence       distances between all pairs of heads
map_encoding          attention maps in 8 bits
"""
