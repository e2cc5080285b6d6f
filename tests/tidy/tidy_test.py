#!/usr/bin/env python3
"""Plants one violation at a time in a small tree and expects exactly that finding."""

from __future__ import annotations

import subprocess
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import tables
import tidy

LAYERS = """\
project_library(base HEADERS result.h SOURCES clock.cc log.cc)
project_library(plan  # the clairvoyant part
  HEADERS plan.h SOURCES belady.cc belady_tree.cc plan.cc
  DEPS base dataset
  PRIVATE_DEPS fmt::fmt)
project_library(net HEADERS server.h SOURCES server.cc DEPS wire)
project_library(metrics SOURCES catalog.cc DEPS base)
"""


class TidyTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("lib/CMakeLists.txt", LAYERS)
        self.write("lib/plan/plan.cc", '#include "plan/plan.h"\n#include "dataset/manifest.h"\n')
        self.write("tests/unit/plan/plan_test.cc", '#include "plan/plan.h"\n')

    def write(self, path: str, text: str) -> None:
        full = self.root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(text)

    def show(self, metric: str) -> None:
        self.write("charts/optcache/dashboards/shown.json", f'{{"expr": "rate({metric}[5m])"}}')

    def expect(self, *beginnings: str) -> None:
        findings = tidy.check(self.root)
        self.assertEqual(len(findings), len(beginnings), findings)
        for finding, beginning in zip(findings, beginnings):
            self.assertTrue(finding.startswith(beginning), f"{finding!r} != {beginning!r}")

    def test_a_clean_tree_has_no_findings(self) -> None:
        self.expect()

    def test_a_library_includes_what_it_does_not_name(self) -> None:
        self.write("lib/plan/plan.h", '#pragma once\n#include "sampler/randperm.h"\n')
        self.expect("lib/plan/plan.h:2: plan includes sampler/ without naming it")

    def test_a_library_names_what_its_layer_forbids(self) -> None:
        self.write("lib/cache/library.cmake", "project_library(cache DEPS base\n  net plan)\n")
        self.expect("lib/cache/library.cmake:1: cache may not depend on net")

    def test_a_library_without_a_layer(self) -> None:
        self.write("lib/misc/library.cmake", "project_library(misc DEPS base)\n")
        self.expect("lib/misc/library.cmake:1: misc has no layer")

    def test_a_library_includes_a_program(self) -> None:
        self.write("lib/net/server.h", '#pragma once\n#include "cache-node/node.h"\n')
        self.expect("lib/net/server.h:2: a library includes cache-node/")

    def test_a_program_includes_another(self) -> None:
        self.write("sidecar/agent.h", '#pragma once\n#include "cache-node/node.h"\n')
        self.expect("sidecar/agent.h:2: a program includes another's cache-node/")

    def test_a_program_includes_test_code(self) -> None:
        self.write("sidecar/agent.h", '#pragma once\n#include "support/manual_clock.h"\n')
        self.expect("sidecar/agent.h:2: a program includes test code")

    def test_a_room_includes_itself_and_those_before_it(self) -> None:
        self.write("cli/terminal/print.h", "#pragma once\n")
        include = '#pragma once\n#include "cli/terminal/print.h"\n'
        self.write("cli/terminal/table.h", include)
        self.write("cli/up/up.h", include)
        self.write("cli/program.h", '#pragma once\n#include "cli/up/up.h"\n')
        self.expect()
        self.write("cli/terminal/table.h", '#pragma once\n#include "cli/up/up.h"\n')
        self.expect("cli/terminal/table.h:2: terminal comes before up, which includes it")
        self.write("cli/terminal/table.h", '#pragma once\n#include "cli/program.h"\n')
        self.expect("cli/terminal/table.h:2: terminal comes before the root")

    def test_a_room_has_its_place(self) -> None:
        self.write("sidecar/attic/box.h", "#pragma once\n")
        self.expect("sidecar/attic/box.h:1: attic is no room of sidecar, add it to ROOMS")

    def test_internal_headers_are_for_their_library_and_its_tests(self) -> None:
        include = '#pragma once\n#include "plan/internal/tree.h"\n'
        self.write("lib/plan/plan.h", include)
        self.write("tests/unit/plan/tree_test.cc", include)
        self.write("cli/simulate/simulate.h", include)
        self.expect("cli/simulate/simulate.h:2: plan/internal/tree.h is internal to plan")

    def test_modules_of_a_package_import_each_other(self) -> None:
        package = "sidecar/python/src/optcache"
        self.write(f"{package}/__init__.py", "from ._a import A\nfrom ._b import B\n")
        self.write(f"{package}/_a.py", "import os\nfrom . import _b\n")
        self.write(f"{package}/_b.py", "")
        self.expect()
        self.write(f"{package}/_b.py", "from ._a import A\n")
        self.expect(f"{package}/_a.py:2: _a -> _b -> _a is an import circle (_a.py:2, _b.py:1), move")

    def test_third_parties_stay_with_their_owner_and_its_tests(self) -> None:
        self.write("lib/metrics/registry.h", "#pragma once\n#include <prometheus/registry.h>\n")
        self.write("tests/unit/metrics/registry_test.cc", "#include <prometheus/registry.h>\n")
        self.write("cache-node/node.h", "#pragma once\n#include <prometheus/registry.h>\n")
        self.expect("cache-node/node.h:2: <prometheus/registry.h> belongs to lib/metrics/")

    def test_the_kubernetes_client_library_has_one_file(self) -> None:
        self.write("lib/net/server.h", "#pragma once\n#include <cpprest/http_client.h>\n")
        owner = "lib/net/internal/rest_client.cc"
        self.expect(f"lib/net/server.h:2: <cpprest/http_client.h> belongs to {owner}")

    def test_pure_libraries_include_no_threads_or_files(self) -> None:
        self.write("lib/plan/plan.h", "#pragma once\n#include <mutex>\n")
        self.expect("lib/plan/plan.h:2: plan is pure but includes <mutex>")

    def test_pure_libraries_read_no_clock(self) -> None:
        self.write("lib/plan/plan.h", "#pragma once\nauto t = SystemClock().Now();\n")
        self.expect("lib/plan/plan.h:2: plan is pure but says SystemClock(")

    def test_every_source_of_a_library_has_its_test(self) -> None:
        self.write("lib/plan/belady.cc", "")
        self.expect("lib/plan/belady.cc:1: has no test, use tests/unit/plan/belady_test.cc")

    def test_every_source_is_in_a_list(self) -> None:
        self.write("tests/unit/plan/tests.cmake", "project_test(plan SOURCES plan_test.cc)")
        self.write("tests/unit/plan/plan_test.cc", "")
        self.write("tests/unit/plan/belady_test.cc", "")
        self.expect(
            "tests/unit/plan/belady_test.cc:1: is never compiled, use tests/unit/plan/tests.cmake"
        )

    def test_a_source_of_a_room_is_in_the_list_of_its_program(self) -> None:
        self.write("cli/CMakeLists.txt", "add_library(cli STATIC up/up.cc)")
        self.write("cli/up/up.cc", "")
        self.write("cli/up/machines.cc", "")
        self.expect("cli/up/machines.cc:1: is never compiled, use cli/CMakeLists.txt")

    def test_one_test_may_cover_the_parts_of_one_idea(self) -> None:
        self.write("lib/plan/belady_tree.cc", "")
        self.write("tests/unit/plan/belady_test.cc", "")
        self.expect()

    def test_code_reports_only_documented_metrics(self) -> None:
        self.write("docs/metrics.md", "| `optcache_node_hits_total` | hits |\n")
        self.write(
            "cache-node/node.h",
            '#pragma once\n"optcache_node_hits_total" "optcache_node_misses_total"\n',
        )
        self.expect("cache-node/node.h:2: optcache_node_misses_total is not in docs/metrics.md")

    def test_the_catalog_has_what_is_reported(self) -> None:
        self.write("docs/metrics.md", "| `optcache_hits_total` | hits |\n")
        self.write("cache-node/node.h", '#pragma once\n"optcache_hits_total"\n')
        self.write("lib/metrics/catalog.cc", '"optcache_hits_total"\n')
        self.write("tests/unit/metrics/catalog_test.cc", "")
        self.expect()
        self.write("lib/metrics/catalog.cc", '"optcache_misses_total"\n')
        self.expect(
            "lib/metrics/catalog.cc:1: optcache_misses_total is not in docs/metrics.md, add it",
            "cache-node/node.h:2: optcache_hits_total is not in lib/metrics/catalog*.cc, add it",
            "lib/metrics/catalog.cc:1: optcache_misses_total is reported by no program, take it out",
        )

    def test_documents_use_easy_words(self) -> None:
        self.write("docs/adr/0001-old.md", "Whoever decided this.\n")
        self.write("docs/guide.md", "It begins anew.\nNobody knows, as so long ago.\n")
        self.expect(
            "docs/guide.md:1: 'anew' is hard to read, use again",
            "docs/guide.md:2: 'so long' is hard to read, use this long",
            "docs/guide.md:2: 'Nobody' is hard to read, use a noun",
        )

    def test_numbers_in_documents_have_their_zero(self) -> None:
        self.write("docs/guide.md", "Hit ratio .62\n**.301**, 0.5, 3 .. 4, v1.2, −.0004\n")
        self.expect(
            "docs/guide.md:1: '.62' is hard to read, use a zero",
            "docs/guide.md:2: '.301' is hard to read, use a zero",
            "docs/guide.md:2: '.0004' is hard to read, use a zero",
        )

    def test_code_in_documents_is_as_it_is(self) -> None:
        code = "```sh\nkill nobody .5 anew\n```\n`--bandwidth .5` of `nobody`, in a.7z\n"
        self.write("docs/guide.md", code)
        self.expect()

    def test_values_are_set_and_have_defaults(self) -> None:
        self.write("docs/guide.md", "Say `a: 1`, or 2 if you do not say.\nPods say so; set `b`.\n")
        self.expect(
            "docs/guide.md:1: 'Say ``' is hard to read, use set",
            "docs/guide.md:1: 'if you do not say' is hard to read, use by default",
        )

    def test_messages_use_easy_words(self) -> None:
        self.write("cli/up/up.cc", 'int foretold;\nFail("nobody listens, {:.3f}");  // nobody does\n')
        self.expect("cli/up/up.cc:2: 'nobody' is hard to read, use a noun")

    def test_messages_name_who_acts(self) -> None:
        self.write("cli/up/up.cc", 'Fail("Somebody listens");  // everybody may\n')
        self.expect("cli/up/up.cc:1: 'Somebody' is hard to read, use a noun")

    def test_help_of_tests_uses_easy_words(self) -> None:
        shown = '"""Runs anew."""\nrun(__doc__,\n    help=f"for {x}, so long")\n'
        self.write("tests/bench/run.py", shown)
        self.write("tests/demo/a.py", '"""Begins anew."""\ndef f():\n    "nobody"  # whoever\n')
        self.expect(
            "tests/bench/run.py:1: 'anew' is hard to read, use again",
            "tests/bench/run.py:3: 'so long' is hard to read, use this long",
        )

    def test_help_of_scripts_and_chart_uses_easy_words(self) -> None:
        self.write("charts/optcache/templates/NOTES.txt", "Run it anew.\n")
        self.write("charts/optcache/values.yaml", "a: 1  # empty: everybody\n")
        self.write("dev", "say 'nobody'\n")
        self.write("devices.txt", "nobody reads them\n")
        self.expect(
            "charts/optcache/templates/NOTES.txt:1: 'anew'",
            "charts/optcache/values.yaml:1: 'everybody'",
            "dev:1: 'nobody'",
        )

    def test_subjects_of_commits_use_easy_words(self) -> None:
        def git(*words: str) -> str:
            who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
            command = ["git", "-C", str(self.root), *who, *words]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        git("init", "--quiet")
        git("commit", "--quiet", "--allow-empty", "--message", "a: it begins anew")
        with unittest.mock.patch.object(tables, "SUBJECTS_AFTER", git("rev-parse", "HEAD").strip()):
            self.expect()
            git("commit", "--quiet", "--allow-empty", "--message", "a: whoever leads\n\nAnew.")
            commit = git("log", "-1", "--format=%h").strip()
            self.expect(f"commit {commit}:1: 'whoever' is hard to read, use a noun")

    def test_comments_use_easy_words(self) -> None:
        self.write("cli/up/up.cc", "int x;  // Whoever asks.\n")
        self.write("sidecar/python/src/optcache/a.py", '"""Begins anew."""\n')
        self.write("tests/unit/cli/up_test.cc", "// Whoever asks.\n")
        self.expect(
            "cli/up/up.cc:1: 'Whoever' is hard to read, use a noun",
            "sidecar/python/src/optcache/a.py:1: 'anew' is hard to read, use again",
        )

    def test_documented_metrics_exist(self) -> None:
        self.write("docs/metrics.md", "\n| `optcache_node_hits_total` | hits |\n")
        self.expect(
            "docs/metrics.md:2: optcache_node_hits_total is not in the code",
        )

    def test_dashboards_and_alerts_show_documented_metrics(self) -> None:
        self.write("docs/metrics.md", "| `optcache_node_hits_total` | hits |\n| `optcache_time` | |\n")
        self.write("cache-node/node.h", '#pragma once\n"optcache_node_hits_total" "optcache_time"\n')
        self.show("optcache_node_hits_total")
        self.write("charts/optcache/templates/prometheusrule.yaml", "expr: optcache_time_bucket\n")
        self.expect()
        self.write("charts/optcache/dashboards/a.json", '{\n "expr": "rate(optcache_gone_total[5m])"}')
        self.expect("charts/optcache/dashboards/a.json:2: optcache_gone_total is not in docs")

    def test_links_resolve(self) -> None:
        self.write("docs/A.md", "[b](B.md#x) [lib](../lib/plan) [web](https://x.example) [c](C.md)")
        self.write("docs/B.md", "```\n[in a fence](nowhere.md)\n```\nand `[in code](nowhere.md)`")
        self.expect("docs/A.md:1: C.md leads nowhere")

    def test_files_are_not_too_long(self) -> None:
        self.write("cli/long.py", "x = 1\n" * (tables.MAX_LINES + 1))
        self.expect(f"cli/long.py:{tables.MAX_LINES}: has {tables.MAX_LINES + 1} lines")

    def test_long_sources_say_how_they_work(self) -> None:
        code = "int x;\n" * tables.MAX_LINES_WITHOUT_OPENING
        self.write("cli/opened.cc", "// Shows plans.\n" + code)
        self.write("cli/short.cc", code)
        self.write("cli/long.cc", code + "int y;\n")
        lines = tables.MAX_LINES_WITHOUT_OPENING + 1
        self.expect(f"cli/long.cc:1: has {lines} lines and no opening")

    def test_files_are_not_too_large(self) -> None:
        self.write("tests/golden/vectors.bin", "x" * (tables.MAX_BYTES + 1))
        self.expect(f"tests/golden/vectors.bin:1: has {tables.MAX_BYTES + 1} bytes")

    def test_tests_do_not_sleep(self) -> None:
        self.write("tests/unit/plan/a_test.cc", "std::this_thread::sleep_for(1s);\n")
        self.expect("tests/unit/plan/a_test.cc:1: sleep_for is banned, use ManualClock")

    def test_only_base_reads_the_clock(self) -> None:
        now = "std::chrono::system_clock::now();\n"
        self.write("lib/base/clock.cc", now)
        self.write("tests/unit/base/clock_test.cc", "")
        self.write("tests/bench/bench_plan.cc", now)
        self.write("cli/up/up.cc", now)
        self.expect("cli/up/up.cc:1: system_clock::now is banned, use a Clock&")

    def test_other_banned_words(self) -> None:
        code = "#pragma once\nassert(x);\nstatic_assert(true);\nstd::cout << 1;"
        self.write("lib/plan/plan.h", code)
        self.expect(
            "lib/plan/plan.h:2: assert( is banned, use CHECK",
            "lib/plan/plan.h:4: std::cout is banned, use Log",
        )

    def test_words_in_comments_and_strings_are_not_code(self) -> None:
        self.write("lib/plan/plan.h", '#pragma once\n// assert(x)\nauto t = "assert(x)";\n')
        self.expect()

    def test_headers_are_included_once(self) -> None:
        self.write("lib/plan/plan.h", "int x;\n")
        self.expect("lib/plan/plan.h:1: can be included twice")

    def test_exceptions_name_files_that_exist(self) -> None:
        self.write("tests/tidy/tables.py", "")
        gone = {"lib/plan/gone.cc": "it was thin"}
        with unittest.mock.patch.dict(tables.UNTESTED, gone, clear=True):
            self.expect("tests/tidy/tables.py:1: UNTESTED names lib/plan/gone.cc")


if __name__ == "__main__":
    unittest.main()
