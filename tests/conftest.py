"""pytest: which tests run only in `./dev test --all`. ./dev test NAME selects by the words of file, class and test."""
import pathlib

import pytest

TESTS = pathlib.Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        # Packages, recipes, documents and tools.
        if item.path.parent == TESTS and item.path.name != "dependencies_test.py":
            item.add_marker(pytest.mark.all)
