"""Foreign engines, loaded with the models that need them: the one place that touches untyped libraries' doors.

Owns: `load_engine` and `open_network`. Driven by the embedded parts, once each, when they are made. What they give is
`Any`; each part puts its own types around it.
"""

from __future__ import annotations

import importlib
from typing import Any

from realtime.errors import MissingExtraError, UserError

__all__ = ["load_engine", "open_network"]


def load_engine(module: str, *, what: str, package: str, extra: str = "local") -> Any:
    """Import a module of an extra.

    Args:
        module: Its import name.
        what: What it is needed for, as the beginning of an error.
        package: The name that it is installed by.
        extra: The extra that brings it.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError(what, extra=extra, package=package) from None


def open_network(model: bytes, *, what: str) -> Any:
    """Open an ONNX network on one thread: the pool's threads are the parallel ones.

    Args:
        model: The network.
        what: What it is needed for, as the beginning of an error.

    Raises:
        MissingExtraError: onnxruntime is not installed.
        UserError: The network cannot be opened.
    """
    runtime = load_engine("onnxruntime", what=what, package="onnxruntime")
    options: Any = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False  # 80 MB less, and not slower
    options.log_severity_level = 3
    try:
        return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no class in common
        raise UserError(f"the network for {what} cannot be opened: {error}") from None
