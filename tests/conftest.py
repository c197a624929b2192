"""pytest: which tests run only in `./dev test --all`, and which share what they prepare for a class.

./dev test NAME selects by the words of file, class and test; tests of one class with setUpClass run in one process.
"""
import pathlib

import pytest

TESTS = pathlib.Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        # Packages, recipes, documents and tools.
        if item.path.parent == TESTS and item.path.name != "dependencies_test.py":
            item.add_marker(pytest.mark.all)
        if item.cls and "setUpClass" in vars(item.cls).keys() | vars(item.cls.__base__).keys():
            item.add_marker(pytest.mark.xdist_group(item.cls.__name__))
