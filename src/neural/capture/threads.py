"""Hooks and substituted functions that act in one thread only.

`watch` and `intervene` add hooks to modules, and substitute functions of torch and transformers.
All threads of a process share these. So whatever a block adds acts in the thread that opened the
block; calls of other threads pass through it unchanged.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from types import MethodType
from typing import Any

from neural.nn.lazy_torch import torch

SHARED_LOCK = threading.RLock()
"""Held while hooks or functions that all threads share are replaced."""


def remember_thread() -> Callable[[], bool]:
    """A function that returns True in the present thread, and False in others.

    On a GPU, autograd has threads of its own, in which activation checkpointing repeats forward
    passes. They work for any thread that called `backward`, so the function is True there, too.
    """
    get_ident = threading.get_ident
    thread = get_ident()

    def is_here() -> bool:
        return get_ident() == thread or _is_autograd_thread()

    return is_here


def _is_autograd_thread() -> bool:
    """Whether a backward pass runs in a thread that Python did not start."""
    is_backward = torch._C._current_graph_task_id() != -1
    return is_backward and isinstance(threading.current_thread(), threading._DummyThread)


def in_this_thread(hook: Callable[..., Any]) -> Callable[..., Any]:
    """A module hook that does nothing in other threads than the present one."""
    is_here = remember_thread()
    return lambda *args: hook(*args) if is_here() else None


class _Dispatcher:
    """Stands for a function or method that some threads have substituted."""

    def __init__(self, owner: Any, name: str) -> None:
        self.function, self.is_inherited = getattr(owner, name), name not in vars(owner)
        self.wrappers: list[tuple[Callable[[], bool], Callable[..., Any]]] = []
        """Whether a wrapper is one of the present thread, and the wrapper; the outermost last."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self.function
        for is_here, wrapper in tuple(self.wrappers):
            if is_here():
                function = partial(wrapper, function)
        return function(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)


@contextmanager
def substitute(owner: Any, name: str, wrapper: Callable[..., Any]) -> Iterator[None]:
    """Inside the block, `owner.name(…)` calls `wrapper(original, …)` in the present thread.

    `owner`: a module of Python or of torch, or a class. In nested blocks, the wrapper of the outer
    one is the `original` of the inner one.
    """
    entry = remember_thread(), wrapper
    with SHARED_LOCK:
        dispatcher = getattr(owner, name)
        if not isinstance(dispatcher, _Dispatcher):
            dispatcher = _Dispatcher(owner, name)
            setattr(owner, name, dispatcher)
        dispatcher.wrappers.append(entry)
    try:
        yield
    finally:
        with SHARED_LOCK:
            dispatcher.wrappers.remove(entry)
            if not dispatcher.wrappers and dispatcher.is_inherited:
                delattr(owner, name)
            elif not dispatcher.wrappers:
                setattr(owner, name, dispatcher.function)


class _SharedBlock:
    """A state of the whole process: the first of several threads enters it, the last leaves it."""

    def __init__(self, make_block: Callable[[], AbstractContextManager[Any]]) -> None:
        self.make_block, self.holders, self.stack = make_block, 0, ExitStack()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """The state holds inside the block."""
        with SHARED_LOCK:
            if not self.holders:
                self.stack.enter_context(self.make_block())
            self.holders += 1
        try:
            yield
        finally:
            with SHARED_LOCK:
                self.holders -= 1
                if not self.holders:
                    self.stack.close()


EAGER_MODE = _SharedBlock(lambda: torch.compiler.set_stance("force_eager"))
"""Compiled models run in eager mode, in all threads."""
