"""Constraints as text: `a + b <= 1`, read into a tree of a few kinds of nodes, never executed as code."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from boca.domain.errors import InvalidInput

_LONGEST = 1000  # characters: a longer one belongs into a function

_ARITHMETIC: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: lambda a, b: float(a) ** b,  # of integers, it could compute for hours
}
_COMPARISONS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_SIGNS: Mapping[type, Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "min": min,
    "max": max,
    "round": round,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "log2": math.log2,
    "log10": math.log10,
}
_ALLOWED = (
    "numbers, texts, True, False, None, names of parameters, + - * / // % **, comparisons, `in` a list, and, or, not, "
    f"and {', '.join(_FUNCTIONS)}"
)


@dataclass(frozen=True)
class Expression:
    """A constraint as text; it holds wherever a parameter that it names is inactive."""

    text: str

    @classmethod
    def parse(cls, text: str, names: Sequence[str]) -> Expression:
        """Return the expression, or refuse what is not a comparison of the named parameters."""
        if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST:
            raise InvalidInput(
                f"A constraint must be a text of 1 to {_LONGEST} characters; got {text!r:.100}. Type 'a + b <= 1'."
            )
        made = cls(text)
        try:
            tree = made._tree
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise InvalidInput(f"The constraint {text!r} is no expression: {error}. Type 'a + b <= 1'.") from error
        made._check(tree.body, names)
        if not _is_truth(tree.body):
            raise InvalidInput(
                f"The constraint {text!r} is neither true nor false; it must compare. Type {text.strip() + ' <= 1'!r}."
            )
        return made

    @cached_property
    def _tree(self) -> ast.Expression:
        return ast.parse(self.text.strip(), mode="eval")

    @cached_property
    def names(self) -> frozenset[str]:
        """The parameters that it names."""
        used = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}
        called = {
            node.func.id
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        return frozenset(used - called)

    def __call__(self, x: Mapping[str, Any]) -> bool:
        """Whether it holds at x."""
        if not self.names <= x.keys():
            return True
        return bool(_value(self._tree.body, x))

    def __getstate__(self) -> dict[str, Any]:
        return {"text": self.text}

    def _check(self, node: ast.AST, names: Sequence[str]) -> None:
        """Refuse a node that is not one of the allowed kinds."""
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if name not in _FUNCTIONS or node.keywords or not node.args:
                self._refuse(node)
            inside: list[ast.AST] = list(node.args)
        elif isinstance(node, ast.Name):
            if node.id not in names:
                raise InvalidInput(
                    f"The constraint {self.text!r} names {node.id!r}, which is no parameter; they are {list(names)}. "
                    "Name one of these."
                )
            inside = []
        elif isinstance(node, ast.Constant):
            if not (node.value is None or isinstance(node.value, bool | int | float | str)):
                self._refuse(node)
            inside = []
        else:
            inside = self._parts(node)
        for part in inside:
            self._check(part, names)

    def _parts(self, node: ast.AST) -> list[ast.AST]:
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            return [node.left, node.right]
        if isinstance(node, ast.UnaryOp) and type(node.op) in _SIGNS:
            return [node.operand]
        if isinstance(node, ast.BoolOp):
            return list(node.values)
        if isinstance(node, ast.Compare) and all(type(op) in _COMPARISONS for op in node.ops):
            return [node.left, *node.comparators]
        if isinstance(node, ast.List | ast.Tuple):
            return list(node.elts)
        self._refuse(node)
        return []

    def _refuse(self, node: ast.AST) -> None:
        raise InvalidInput(
            f"The constraint {self.text!r} has {ast.unparse(node)!r}, and may have {_ALLOWED}. "
            "Pass a function to space.where for anything else."
        )


def _is_truth(node: ast.AST) -> bool:
    """Whether a node is true or false, and not a number."""
    if isinstance(node, ast.BoolOp):
        return all(_is_truth(value) for value in node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return True
    return isinstance(node, ast.Compare | ast.Name)


def _value(node: ast.AST, x: Mapping[str, Any]) -> Any:
    """Return the value of a checked node."""
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return x[node.id]
        case ast.BinOp():
            return _ARITHMETIC[type(node.op)](_value(node.left, x), _value(node.right, x))
        case ast.UnaryOp():
            return _SIGNS[type(node.op)](_value(node.operand, x))
        case ast.BoolOp():
            values = (_value(value, x) for value in node.values)
            return all(values) if isinstance(node.op, ast.And) else any(values)
        case ast.Compare():
            return _compared(node, x)
        case ast.Call(func=ast.Name(id=name)):
            return _FUNCTIONS[name](*(_value(argument, x) for argument in node.args))
        case ast.List() | ast.Tuple():
            return [_value(element, x) for element in node.elts]
    raise AssertionError(f"{ast.dump(node)} was not checked")


def _compared(node: ast.Compare, x: Mapping[str, Any]) -> bool:
    left = _value(node.left, x)
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = _value(comparator, x)
        if not _COMPARISONS[type(op)](left, right):
            return False
        left = right
    return True
