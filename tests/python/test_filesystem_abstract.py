"""fsspec's own tests of what a file system does, as far as they only read.

Left out are its tests of copy, put, pipe, mv and of files opened with "xb", all of which write.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Server

fsspec = pytest.importorskip("fsspec")
pytest.importorskip(
    "fsspec.tests.abstract", reason="fsspec has them from 2023.4 on: ./dev test frameworks"
)

import optcache.filesystem  # noqa: E402, F401
from fsspec.implementations.local import LocalFileSystem, make_path_posix  # noqa: E402
from fsspec.tests.abstract import AbstractFixtures, AbstractGetTests  # noqa: E402


class TestAsFsspecSays(AbstractGetTests, AbstractFixtures):  # type: ignore[misc]
    """Copies to local files, of all kinds, with globs, recursion and depth."""

    test_get_directory_recursive = None  # it makes its folders by mkdir and touch

    @pytest.fixture
    def scenarios(self, serve: Callable[..., Server], tmp_path: Path) -> Path:
        """The folders that fsspec's tests read, in the dataset from the start."""
        root = tmp_path / "source"
        root.mkdir()
        make = {
            "bulk": self._bulk_operations_scenario_0,
            "globs": self._glob_edge_cases_files,
            "prefix": self._dir_and_file_with_same_name_prefix,
            "hashed": self._10_files_with_hashed_names,
        }
        for name, scenario in make.items():
            local = LocalFileSystem(auto_mkdir=True)
            scenario(local, self._join, make_path_posix(str(root / name)))
        serve(root)
        return root

    @staticmethod
    def _join(*parts: str) -> str:
        return "/".join(parts)

    @pytest.fixture
    def fs(self, scenarios: Path) -> Any:
        return fsspec.filesystem("optcache", skip_instance_cache=True)

    @pytest.fixture
    def fs_path(self) -> str:
        return "test"

    def _source(self, fs: Any, scenario: str) -> str:
        assert fs.isdir(f"test/{scenario}/source")
        return f"test/{scenario}/source"

    @pytest.fixture
    def fs_bulk_operations_scenario_0(self, fs: Any) -> str:
        return self._source(fs, "bulk")

    @pytest.fixture
    def fs_glob_edge_cases_files(self, fs: Any) -> str:
        return self._source(fs, "globs")

    @pytest.fixture
    def fs_dir_and_file_with_same_name_prefix(self, fs: Any) -> str:
        return self._source(fs, "prefix")

    @pytest.fixture
    def fs_10_files_with_hashed_names(self, fs: Any) -> str:
        return self._source(fs, "hashed")
