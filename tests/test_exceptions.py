"""The tree at the top of exceptions.py is the tree of the code."""

import inspect
import re

from quorate import exceptions


def classes():
    return {
        name: kind
        for name, kind in vars(exceptions).items()
        if inspect.isclass(kind) and issubclass(kind, Exception)
    }


def test_every_exception_derives_from_the_one_base_and_is_exported():
    assert set(classes()) == set(exceptions.__all__)
    assert all(issubclass(kind, exceptions.QuorateError) for kind in classes().values())


def test_the_drawn_tree_lists_every_class_under_its_parent():
    drawn, path = {}, {}
    for line in inspect.getdoc(exceptions).splitlines():
        match = re.match(r"^(\s+(?:│\s+)?(?:[├└]── )?)([A-Z]\w+)(?:\s+\((\w+)\))?", line)
        if match:
            depth = len(match[1])
            path = {d: n for d, n in path.items() if d < depth} | {depth: match[2]}
            parents = [n for d, n in sorted(path.items()) if d < depth]
            drawn[match[2]] = (parents[-1] if parents else None, match[3])
    assert set(drawn) == set(classes())
    for name, (parent, builtin) in drawn.items():
        bases = {base.__name__ for base in classes()[name].__mro__[1:]}
        assert parent is None or parent in bases
        assert builtin is None or builtin in bases
