"""What a function by value needs to have imported. That workers get it is tested with shipping."""

from __future__ import annotations

import pickle
import xml.etree.ElementTree
from typing import Any

from fanfold.submodules import modules_inside, with_submodules

WITHIN = ["xml.etree", "xml.etree.ElementTree"]


def found(function: Any) -> list[str]:
    return list(modules_inside(function))


def test_names_count_wherever_code_has_them_but_all_of_them_are_needed():
    def deep() -> object:
        class Local:
            def method(self) -> object:
                return [xml.etree.ElementTree for _ in [1]]

        return Local

    assert found(deep) == WITHIN
    assert found(lambda: xml.etree) == WITHIN[:1]
    assert found(lambda: pickle.dumps) == []


def test_a_cell_that_is_empty_still_is_no_module():
    def early() -> object:
        return later, xml.etree.ElementTree

    assert found(early) == WITHIN
    later = early


def test_only_functions_by_value_get_any():
    reduced = (len, ("abc",))
    assert with_submodules("abc", reduced) is reduced
    assert with_submodules(lambda: 3, reduced) is reduced
    assert with_submodules(lambda: xml.etree, "a.name") == "a.name"
    make, (modules, *rest) = with_submodules(lambda: xml.etree, reduced)
    assert modules == ("xml.etree",) and make(modules, *rest) == 3
