"""Training: a task and a run folder go in, trained weights and a finished run come out.

engine.py         the training loop (`fit`) and its stop signals
state.py          what a checkpoint holds; best scores, early stopping, plateaus
loss_module.py    the loss as a module; activation checkpointing
ema.py            exponential moving average of the weights
buffer_sync.py    batch-norm statistics and other buffers across processes
process_group.py  DDP, FSDP and collectives
rendezvous.py     how restarted processes find each other
launch.py         `--devices N`: torchrun inside this command
errors.py         divergence and out-of-memory errors
runner.py         base class of sweep runners
runners/          one file per runner: where the trials of a sweep run
parent_watch.py   stops a child process when its parent is gone
"""
