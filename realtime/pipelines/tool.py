"""What users hand over as a tool: a function, described to the model by its signature and docstring.

Owns: `Tool`, `CallContext`, and the two translations around a call: the model's arguments into Python values
(validated by pydantic), and whatever comes back into text and pictures. Driven by `pipelines/tools.py`, which runs the
calls. It never runs a tool by itself and never raises for what a model wrote or a tool returned
(behaviour.md T3; field cases B08, B09, B11).
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation, PydanticUserError

from realtime.core.settings import ToolSpec, check_number
from realtime.errors import ArgumentError
from realtime.pipelines.setup import as_list

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

__all__ = ["BadArgumentsError", "CallContext", "Tool", "build_tools"]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_SECTION = re.compile(
    r"^(args|arguments|parameters|returns?|raises|yields?|examples?|notes?|attributes|see also)\s*:\s*$", re.IGNORECASE
)
_ARGUMENT = re.compile(r"^(?P<name>\*{0,2}\w+)\s*(?:\([^)]*\))?\s*:\s*(?P<text>.*)$")
_FIELD_LIST = re.compile(r"^:param\s+(?:[\w\[\], .|]+\s+)?(?P<name>\w+)\s*:\s*(?P<text>.*)$")
_MOST_PROBLEMS = 5


create_model("Warm")
# The first model of a process looks through all installed packages for pydantic's plugins: better here, while modules
# are loaded, than on the event loop when the first tool is made.


class BadArgumentsError(ValueError):
    """What the model wrote is not what the tool takes. The text is short, and is what the model is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """What a running call may know of where it runs.

    A tool's parameter annotated with this (or `realtime.ToolContext`) is injected and left out of its schema.
    """

    call_id: str
    """The call."""
    agent_id: str
    """Whose tool it is."""


class Tool:
    """A function that the model may call.

    Plain functions are taken as tools wherever tools are taken; wrap one only to say more about it::

        Tool(book_table, sequential=True, timeout_seconds=60, needs_approval=True)

    The schema comes from the signature, descriptions from the docstring (Google style or ``:param x:``). Async functions
    run on the event loop, others in threads. A parameter annotated `ToolContext` is injected.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        sequential: bool = False,
        timeout_seconds: float | None = None,
        needs_approval: bool = False,
    ) -> None:
        """Describe a function as a tool.

        Args:
            function: What is called. No ``*args`` or ``**kwargs``.
            name: What the model calls it; None: the function's name. ``[a-zA-Z0-9_-]{1,64}``.
            description: What the model is told of it; None: the docstring before its sections.
            sequential: It waits for all calls before it, and calls after it wait.
            timeout_seconds: How long one call may take; None: the session's ``tool_timeout_seconds``.
            needs_approval: The application is asked first (`ApprovalRequested`, `RealtimeSession.approve`).

        Raises:
            ArgumentError: It cannot be called, or its parameters cannot be described in JSON schema.
        """
        if not callable(function):
            raise ArgumentError("tools", function, "functions, async functions or Tools")
        check_number("timeout_seconds", timeout_seconds, above=True, none_is="the session's tool_timeout_seconds")
        self.function = function
        self.is_async = _is_async(function)
        tool_name: Any = name if name is not None else _name_of(function)
        if not isinstance(tool_name, str) or not _NAME.fullmatch(tool_name):
            raise ArgumentError("name", tool_name, "1 to 64 letters, digits, underscores or hyphens")
        summary, notes = _read_docstring(inspect.getdoc(_innermost(function)) or "")
        self._parameters = _read_signature(function, tool_name)
        self._model = _make_model(tool_name, self._parameters, notes)
        self.spec = ToolSpec(
            name=tool_name,
            description=summary if description is None else description,
            parameters=_schema_of(self._model, tool_name),
            sequential=bool(sequential),
            timeout_seconds=timeout_seconds,
            needs_approval=bool(needs_approval),
        )

    @property
    def name(self) -> str:
        """What the model calls it."""
        return self.spec.name

    def __repr__(self) -> str:
        """Name it."""
        return f"Tool({self.name!r})"

    def bind(self, arguments: str, context: CallContext) -> Callable[[], Any]:
        """Make the call that a model asked for, with nothing left but to run it.

        Args:
            arguments: What the model wrote: a JSON object; empty means no arguments.
            context: What is injected where the function asks for it.

        Raises:
            BadArgumentsError: They are no JSON object, or not what the function takes.
        """
        # Half of a surrogate pair is no text: it becomes a question mark, and the JSON parser refuses its escape.
        text = arguments.encode("utf-8", "replace").decode("utf-8")
        try:
            values = self._model.model_validate_json(text if text.strip() else "{}")
        except ValidationError as error:
            raise BadArgumentsError(_explain(error)) from error
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for field, parameter in self._parameters.items():
            value = context if parameter.is_context else getattr(values, field)
            if parameter.positional_only:
                positional.append(value)
            else:
                named[parameter.name] = value
        return functools.partial(self.function, *positional, **named)


def build_tools(tools: Any, argument: str = "tools") -> dict[str, Tool]:
    """Make a `Tool` of everything that is not one yet, by name.

    Raises:
        ArgumentError: Something is no tool, or two have one name.
    """
    found: dict[str, Tool] = {}
    for each in as_list(argument, tools, "an iterable of functions and Tools"):
        tool = each if isinstance(each, Tool) else Tool(each)
        if tool.name in found:
            raise ArgumentError(argument, tool.name, "tools with different names")
        found[tool.name] = tool
    return found


# -- the signature -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    annotation: Any
    default: Any
    positional_only: bool
    is_context: bool


def _innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """Through partials, to what has the docstring and the name."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _name_of(function: Callable[..., Any]) -> str:
    inner = _innermost(function)
    return getattr(inner, "__name__", None) or type(inner).__name__


def _is_async(function: Callable[..., Any]) -> bool:
    inner = _innermost(function)
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(getattr(inner, "__call__", None))  # noqa: B004


def _read_signature(function: Callable[..., Any], tool_name: str) -> dict[str, _Parameter]:
    """The parameters by the field names that stand for them in the model (any real name is allowed then)."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise ArgumentError("tools", function, f"functions with a signature that can be read ({tool_name})") from error
    inner = _innermost(function)
    holder = inner if inspect.isroutine(inner) else getattr(type(inner), "__call__", inner)  # noqa: B004  (hints are read off the method)
    hints = _read_hints(holder)
    parameters: dict[str, _Parameter] = {}
    for position, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise ArgumentError("tools", tool_name, f"without *args or **kwargs, which have no schema ({name})")
        annotation = hints.get(name, parameter.annotation)
        parameters[f"p{position}"] = _Parameter(
            name=name,
            annotation=Any if annotation is inspect.Parameter.empty else annotation,
            default=parameter.default,
            positional_only=parameter.kind is inspect.Parameter.POSITIONAL_ONLY,
            is_context=_is_context(annotation),
        )
    return parameters


def _read_hints(holder: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(holder, include_extras=True)
    except (NameError, TypeError, AttributeError):
        # One name that exists for type checkers only must not hide the others.
        raw = dict(getattr(holder, "__annotations__", {}))
        scope = dict(getattr(holder, "__globals__", {}))
        return {name: _evaluate(hint, scope) for name, hint in raw.items()}


def _evaluate(hint: Any, scope: dict[str, Any]) -> Any:
    if not isinstance(hint, str):
        return hint
    probe: Any = type("_Probe", (), {"__annotations__": {"value": hint}})
    try:
        return typing.get_type_hints(probe, globalns=scope, include_extras=True)["value"]
    except (NameError, TypeError, AttributeError, SyntaxError):
        return hint


def _is_context(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.split("[")[0].rpartition(".")[2].strip() in ("ToolContext", "CallContext")
    for each in (annotation, *typing.get_args(annotation)):
        origin = typing.get_origin(each) or each
        if inspect.isclass(origin) and issubclass(origin, CallContext):
            return True
    return False


def _make_model(tool_name: str, parameters: Mapping[str, _Parameter], notes: Mapping[str, str]) -> type[BaseModel]:
    fields: dict[str, tuple[Any, FieldInfo]] = {}
    for field, parameter in parameters.items():
        if parameter.is_context:
            continue
        if isinstance(parameter.annotation, str):
            raise ArgumentError(
                "tools",
                tool_name,
                f"annotated with names that exist at run time ({parameter.name}: {parameter.annotation})",
            )
        said: dict[str, Any] = {"alias": parameter.name}
        if parameter.name in notes:
            said["description"] = notes[parameter.name]
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[field] = (parameter.annotation, Field(default, **said))
    config = ConfigDict(extra="forbid", use_attribute_docstrings=False)
    try:
        return create_model(tool_name, __config__=config, **typing.cast("dict[str, Any]", fields))
    except (PydanticSchemaGenerationError, PydanticUndefinedAnnotation, PydanticUserError, TypeError) as error:
        reason = str(error).splitlines()[0][:200]
        raise ArgumentError("tools", tool_name, f"annotated with types that have a JSON schema ({reason})") from error


def _schema_of(model: type[BaseModel], tool_name: str) -> dict[str, Any]:
    try:
        schema = model.model_json_schema(by_alias=True)
    except PydanticUserError as error:
        reason = str(error).splitlines()[0][:200]
        raise ArgumentError("tools", tool_name, f"annotated with types that have a JSON schema ({reason})") from error
    cleaned = _without_titles(schema)
    cleaned.setdefault("properties", {})
    return cleaned


def _without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """The titles that pydantic makes of names cost tokens and say nothing. Properties may be called so."""
    cleaned: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if key in ("properties", "$defs") and _is_object(value):
            cleaned[key] = {name: _clean(member) for name, member in value.items()}
        elif key in ("default", "const", "enum", "examples"):
            cleaned[key] = value
        else:
            cleaned[key] = _clean(value)
    return cleaned


def _clean(value: Any) -> Any:
    if _is_object(value):
        return _without_titles(value)
    if _is_array(value):
        return [_clean(each) for each in value]
    return value


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_array(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _explain(error: ValidationError) -> str:
    """What is wrong with the arguments, short enough for a model and without what it wrote."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    lines: list[str] = []
    for problem in problems[:_MOST_PROBLEMS]:
        where = ".".join(str(part) for part in problem["loc"])
        lines.append(f"{where}: {problem['msg']}" if where else problem["msg"])
    if len(problems) > _MOST_PROBLEMS:
        lines.append(f"and {len(problems) - _MOST_PROBLEMS} more")
    return ("; ".join(lines))[:500]


# -- the docstring -------------------------------------------------------------------------------------------------------


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The summary before the first section, and what is said of each parameter."""
    summary: list[str] = []
    notes: dict[str, str] = {}
    section: str | None = None
    margin: int | None = None
    current: str | None = None
    for line in text.splitlines():
        stripped = line.strip()
        listed = _FIELD_LIST.match(stripped)
        if listed:
            name = str(listed["name"])
            section, current, margin = "field list", name, None
            notes[name] = listed["text"]
        elif _SECTION.match(line):
            section, current, margin = stripped.rstrip(": ").lower(), None, None
        elif stripped.startswith(":") and section in (None, "field list"):
            section, current = "field list", None
        elif section is None:
            summary.append(line)
        elif section in ("args", "arguments", "parameters") and stripped:
            indent = len(line) - len(line.lstrip())
            margin = indent if margin is None else margin
            entry = _ARGUMENT.match(stripped) if indent <= margin else None
            if entry:
                name = str(entry["name"]).lstrip("*")
                current, notes[name] = name, entry["text"]
            elif current is not None:
                notes[current] = f"{notes[current]} {stripped}".strip()
        elif section == "field list" and current is not None and stripped:
            notes[current] = f"{notes[current]} {stripped}".strip()
    return "\n".join(summary).strip(), {name: note for name, note in notes.items() if note}
