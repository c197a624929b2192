"""The logic of the benchmarks: reports, comparisons, plots, generated sessions. Nothing is measured."""
import io
import json
import os
import shutil
import sys
import tempfile
import unittest
import xml.dom.minidom
from contextlib import redirect_stderr, redirect_stdout

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests", "bench"))
import bench  # noqa: E402
import compare  # noqa: E402
import curves_points  # noqa: E402
import fit  # noqa: E402
import generate  # noqa: E402
import machine  # noqa: E402
import session_shape  # noqa: E402
import plot  # noqa: E402
import readme  # noqa: E402
import report  # noqa: E402
import spec  # noqa: E402

LATENCY = spec.Spec("latency", "s", "group", "bare", ratio_most=1.5)
SPEED = spec.Spec("speed", "B/s", "group", "dom", least=1e9, ratio_least=0.5, better="more")
FANOUT = spec.Spec("fan-out", "s", "group", "beast", ratio_least=25, gain=True)
START = spec.Spec("start", "s", "group", most=1.0, scales=True)
QUIET = {"others": 0.01, "steal": 0.0, "calibration_spread": 0.02, "noisy": False}


def run(*rows, id="one", noise=QUIET, quick=False):
    return {"format": 1, "machine": {"cpu": "A processor", "cores": 2, "kernel": "6.1", "memory": 1 << 30, "id": id}, "build": {"version": "0.1.0", "type": "Release"},
            "when": "2026-01-01 00:00:00 +0000", "quick": quick, "seconds": 12.0, "noise": noise, "rows": list(rows), "skipped": []}


class Rows(unittest.TestCase):
    def test_a_row_is_the_median_of_its_rounds(self):
        row = report.row(LATENCY, [30e-6, 24e-6, 90e-6], [20e-6, 20e-6, 20e-6])
        self.assertEqual((row["figure"], row["floor"]), (30e-6, 20e-6))
        self.assertAlmostEqual(row["spread"], (90 - 24) / 2 / 30)

    def test_a_ratio_is_the_median_of_paired_rounds(self):
        # the machine was half as fast in the second and third round: figures move, the ratio does not
        row = report.row(LATENCY, [14e-6, 28e-6, 42e-6], [10e-6, 20e-6, 30e-6])
        self.assertAlmostEqual(row["ratio"], 1.4)
        self.assertTrue(row["met"])

    def test_budgets_apply_in_both_directions(self):
        self.assertEqual(report.row(LATENCY, [31e-6], [20e-6])["met"], False)
        self.assertEqual(report.row(SPEED, [1.2e9], [2e9])["met"], True)
        self.assertEqual(report.row(SPEED, [0.9e9], [1e9])["met"], False)   # fast compared with its floor, but slow
        self.assertEqual(report.row(SPEED, [1.2e9], [3e9])["met"], False)   # fast, but slow compared with its floor
        self.assertEqual(report.row(FANOUT, [1e-7], [46e-7])["met"], True)  # floor / figure
        self.assertEqual(report.row(FANOUT, [1e-7], [24e-7])["met"], False)

    def test_a_budget_on_a_ratio_is_not_met_without_a_floor(self):
        self.assertEqual(report.row(LATENCY, [1e-6])["met"], False)

    def test_a_smaller_input_has_a_smaller_budget(self):
        self.assertEqual(report.row(START, [0.6], scale=0.5)["met"], False)
        self.assertIn("500 ms", report.row(START, [0.4], scale=0.5)["budget"])

    def test_a_row_without_a_budget_is_neither_met_nor_not(self):
        row = report.row(spec.Spec("free", "s", "group"), [1.0])
        self.assertNotIn("met", row)
        self.assertEqual(report.cells(row)[-1], "")

    def test_quantities_have_three_digits_and_their_unit(self):
        for value, unit, text in ((24.61e-6, "s", "24.6 us"), (1.5, "s", "1.5 s"), (0, "s", "0 ns"), (64 << 20, "B", "64 MiB"), (1023, "B", "1023 B"), (1.31e9, "B/s", "1.31 GB/s")):
            self.assertEqual(report.quantity(value, unit), text)

    def test_every_budget_has_a_row_with_a_unique_name(self):
        names = [row.what for row in spec.ROWS]
        self.assertEqual(len(names), len(set(names)))
        for words in ("p99", "fan-out", "bytes to events", "868 MB", "100,000 cold", "idle, 2,000", "20,000 lines", "first event", "1.4 GB", "idle subscriber",
                      "with TLS", "a cold file", "a live stream", "a uuid", "live log"):
            self.assertTrue(any(words in name for name in names), words)

    def test_a_name_selects_rows_or_a_group(self):
        self.assertEqual({row.group for row in spec.chosen("memory")}, {"memory"})
        self.assertEqual({row.group for row in spec.chosen("P99")}, {"latency", "export", "load", "fairness", "search"})
        self.assertEqual(spec.chosen("no such thing"), [])
        self.assertEqual(spec.chosen(""), list(spec.ROWS))


class Comparison(unittest.TestCase):
    def moved(self, old, new):
        return [one["moved"] for one in compare.compared(run(*old), run(*new))]

    def test_a_change_beyond_the_noise_is_better_or_worse(self):
        rows = [report.row(LATENCY, [10e-6]), report.row(SPEED, [1e9])]
        self.assertEqual(self.moved(rows, [report.row(LATENCY, [12e-6]), report.row(SPEED, [1.2e9])]), ["worse", "better"])

    def test_a_change_within_the_spread_of_either_run_is_noise(self):
        steady, wide = report.row(LATENCY, [10e-6, 10e-6, 10e-6]), report.row(LATENCY, [9e-6, 12e-6, 15e-6])
        self.assertEqual(self.moved([steady], [wide]), ["same"])
        self.assertEqual(self.moved([wide], [steady]), ["same"])
        self.assertEqual(self.moved([steady], [report.row(LATENCY, [10.4e-6])]), ["same"])

    def test_new_and_removed_rows_are_reported(self):
        self.assertEqual(self.moved([report.row(LATENCY, [1.0])], [report.row(SPEED, [1e9])]), ["new", "removed"])

    def test_runs_of_different_machines_are_compared_by_ratios(self):
        old, new = run(report.row(LATENCY, [10e-6], [10e-6]), report.row(FANOUT, [1e-7], [30e-7]), id="one"), run(
            report.row(LATENCY, [30e-6], [30e-6]), report.row(FANOUT, [1e-7], [60e-7]), id="other")
        self.assertEqual([one["moved"] for one in compare.compared(old, new)], ["same", "better"])
        self.assertIn("different machines", compare.table(old, new))

    def test_rows_without_a_ratio_are_not_compared_across_machines(self):
        old, new = run(report.row(START, [1.0])), run(report.row(START, [2.0]), id="other")
        self.assertNotIn("moved", compare.compared(old, new)[0])
        self.assertIn("0 of 1 rows moved", compare.table(old, new))

    def test_the_table_names_changed_rows_and_noisy_runs(self):
        old = run(report.row(LATENCY, [10e-6]))
        text = compare.table(old, run(report.row(LATENCY, [20e-6]), noise={**QUIET, "steal": 0.2, "noisy": True}))
        self.assertIn("1 of 1 rows moved beyond the noise: latency (worse)", text)
        self.assertIn("+100%", text)
        self.assertIn("new: NOISY", text)


class Noise(unittest.TestCase):
    def verdict(self, busy=10.0, ours=10.0, stolen=0.0, loops=(1.0,) * 20):
        return machine.verdict(10.0, 2, busy, ours, stolen, loops)

    def test_an_idle_machine_is_quiet(self):
        self.assertFalse(self.verdict()["noisy"])

    def test_other_processes_steal_and_an_unsteady_clock_are_noise(self):
        self.assertTrue(self.verdict(busy=13.0)["noisy"])
        self.assertTrue(self.verdict(stolen=0.5)["noisy"])
        self.assertTrue(self.verdict(loops=[1.0] * 15 + [1.5] * 5)["noisy"])

    def test_processors_are_read_from_proc_stat(self):
        tick = os.sysconf("SC_CLK_TCK")
        text = f"cpu  {10 * tick} {tick} {2 * tick} 999 999 {tick} {tick} {3 * tick} 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"
        self.assertEqual(machine.processor_seconds(text), (15.0, 3.0))


class Exponents(unittest.TestCase):
    def test_a_power_law_gives_its_exponent(self):
        for exponent in (-1.0, 0.0, 0.5, 1.0, 2.0):
            self.assertAlmostEqual(fit.exponent([(x, 7 * x ** exponent) for x in (1, 10, 100, 1000)]), exponent)

    def test_only_the_upper_decades_count(self):
        points = [(x, max(1000, x)) for x in (1, 10, 100, 1000, 10_000, 100_000)]
        self.assertAlmostEqual(fit.exponent(fit.upper(points)), 1.0)

    def test_few_points_are_all_kept(self):
        self.assertEqual(len(fit.upper([(1, 1), (10, 1), (1_000_000, 1)])), 3)

    def test_one_size_has_no_exponent(self):
        self.assertIsNone(fit.exponent([(10, 1), (10, 2)]))


class Plots(unittest.TestCase):
    def test_a_plot_is_well_formed_and_names_the_exponent(self):
        text = plot.svg("A <title>", "streams", "", "time", "s", {"p50": [(1, 1e-5), (10, 1e-4), (100, 1e-3)]})
        self.assertEqual(len(xml.dom.minidom.parseString(text).getElementsByTagName("circle")), 3)
        self.assertIn("p50: n^1.00", text)

    def test_a_flat_line_has_an_axis_too(self):
        xml.dom.minidom.parseString(plot.svg("Flat", "streams", "", "memory", "B", {"resident": [(10, 1000), (100, 1000)]}))

    def test_stored_curves_are_consistent_and_on_the_page(self):
        folder = os.path.join(TOP, "tests", "bench", "plots")
        with open(os.path.join(TOP, "tests", "bench", "README.md")) as file:
            page = file.read()
        for curve in curves_points.CURVES:
            with open(os.path.join(folder, curve.name + ".json")) as file:
                kept = json.load(file)
            self.assertEqual(kept["exponents"], {name: None if (found := fit.exponent(fit.upper(points))) is None else round(found, 3)
                                                 for name, points in kept["series"].items()}, curve.name)
            self.assertIn(f"(plots/{curve.name}.svg)", page)


class Readme(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="earshot-bench-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.top)
        os.makedirs(os.path.join(self.top, "tests", "bench"))
        for name in readme.FILES:
            self.write(name, f"before\n{readme.BEGIN}\nold\n{readme.END}\nafter\n")

    def write(self, name, text):
        with open(os.path.join(self.top, name), "w") as file:
            file.write(text)

    def read(self, name):
        with open(os.path.join(self.top, name)) as file:
            return file.read()

    def test_only_the_text_between_the_markers_is_rewritten(self):
        latency, slow, other = "append to subscriber, p99", "append to subscriber, p50", "append while 100 clients stall, p50"
        figures = {latency: 24e-6, slow: 40e-6, other: 24e-6}
        rows = [report.row(next(row for row in spec.ROWS if row.what == what), [figure], [20e-6]) for what, figure in figures.items()]
        for _ in range(2):
            readme.rewrite(run(*rows), self.top)
        short, table = (self.read(name) for name in readme.FILES)
        for text in (short, table):
            self.assertTrue(text.startswith("before\n") and text.endswith("\nafter\n"), text)
            self.assertNotIn("old", text)
        self.assertEqual(table.count(f"| {latency} | 24 us | 20 us, inotify, pread, send | 1.2x | <= 1.5x | yes |"), 1)
        self.assertIn(other, table)
        self.assertEqual(short.count(f"- **Latency**: 1 of 2 budgets met: {latency} 24 us (1.2x inotify, pread, send).\n"), 1)
        self.assertNotIn(slow, short)  # counted, but the table shows it
        self.assertNotIn(other, short)

    def test_a_gain_is_shown_as_less_than_its_floor(self):
        fan_out = next(row for row in spec.ROWS if row.what == readme.SUMMARY["Throughput"][0])
        self.assertIn("100 ns (46x less than a Beast write each)", readme.summary(run(report.row(fan_out, [1e-7], [46e-7]))))

    def test_a_quick_run_is_marked(self):
        readme.rewrite(run(quick=True), self.top)
        self.assertIn("the figures are meaningless", self.read("README.md"))

    def test_a_file_without_markers_is_named_and_not_changed(self):
        for text in ("nothing", f"{readme.END}\n{readme.BEGIN}", f"{readme.BEGIN}{readme.BEGIN}{readme.END}"):
            self.write("README.md", text)
            with self.assertRaisesRegex(ValueError, "^README.md needs one"):
                readme.rewrite(run(), self.top)
            self.assertEqual(self.read("README.md"), text)

    def test_the_summary_names_rows(self):
        self.assertLessEqual({what for names in readme.SUMMARY.values() for what in names}, {row.what for row in spec.ROWS})

    def test_the_project_s_readme_files_have_their_markers(self):
        for name in readme.FILES:
            with open(os.path.join(TOP, name)) as file:
                readme.replaced(file.read(), "")


class Generator(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="earshot-bench-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)

    def written(self, name, *given, **more):
        root = os.path.join(self.folder, name)
        texts = []
        for path in generate.write_sessions(root, *given, **more):
            with open(path, "rb") as file:
                texts.append((os.path.relpath(path, root), file.read()))
        return texts

    def test_the_same_seed_gives_the_same_bytes(self):
        one, same, other = (self.written(name, 5, 300_000, seed=seed) for name, seed in (("a", 1), ("b", 1), ("c", 2)))
        self.assertEqual(one, same)
        self.assertNotEqual(one, other)

    def test_the_number_of_sessions_and_bytes_is_as_requested(self):
        texts = self.written("a", 40, 12_000_000)
        self.assertEqual(len(texts), 40)
        self.assertAlmostEqual(sum(len(text) for _, text in texts) / 12_000_000, 1, delta=0.2)

    def test_every_line_is_a_record_and_ids_are_unique(self):
        seen = set()
        for _, text in self.written("a", 20, 2_000_000):
            for line in text.splitlines():
                uuid = json.loads(line).get("uuid")
                self.assertNotIn(uuid, seen - {None})
                seen.add(uuid)

    def test_a_long_session_repeats_its_template_with_other_ids(self):
        (_, text), = self.written("a", 1, int(2.5 * generate.template_bytes_max), era="2.1.330")
        records = [json.loads(line) for line in text.splitlines()]
        uuids = [record["uuid"] for record in records if "uuid" in record]
        self.assertGreater(len(text), 2 * generate.template_bytes_max)
        self.assertEqual(len(uuids), len(set(uuids)))
        self.assertEqual(len({record["sessionId"] for record in records if "sessionId" in record}), 1)

    def test_each_era_has_the_measured_shape(self):
        for era, wanted in generate.SHAPES.items():
            self.written(era, 8, 8_000_000, era=era)
            got = session_shape.measure(os.path.join(self.folder, era))
            self.assertEqual(list(got), [era])
            self.assertAlmostEqual(got[era]["bulk_share"], wanted["bulk_share"], delta=0.15, msg=era)
            self.assertAlmostEqual(got[era]["calls_a_turn"] / wanted["calls_a_turn"], 1, delta=0.2, msg=era)
            middle = got[era]["line_bytes"][3] / wanted["line_bytes"][3]
            self.assertTrue(0.6 < middle < 1.6, f"{era}: lines of {middle:.2f} times the recorded median")

    def test_shapes_contain_no_content(self):
        os.makedirs(os.path.join(self.folder, "projects"))
        with open(os.path.join(self.folder, "projects", "one.jsonl"), "w") as file:
            file.write(json.dumps({"type": "user", "version": "2.0.1", "uuid": "u", "message": {"role": "user", "content": "the secret plan"}}) + "\nnot json\n")
        shapes = session_shape.measure(self.folder)
        self.assertEqual(shapes["2.0"]["lines"], 1)
        self.assertNotIn("secret", session_shape.dumps(shapes))
        self.assertEqual(json.loads(session_shape.dumps(shapes)), shapes)

    def test_invalid_mixes_are_refused(self):
        self.assertEqual(generate.mix_of("2.0=3,2.1=1"), {"2.0": 0.75, "2.1": 0.25})
        self.assertAlmostEqual(sum(generate.mix_of("recorded").values()), 1)
        for invalid, named in (("3.0", "3.0"), ("2.0=many", "many"), ("2.0=0", "'0'")):
            with self.assertRaisesRegex(ValueError, named):
                generate.mix_of(invalid)

    def test_sizes_may_have_a_unit(self):
        self.assertEqual([generate.bytes_of(text) for text in ("100", "1.5K", "868M", "1G")], [100, 1536, 868 << 20, 1 << 30])


class CommandLine(unittest.TestCase):
    def run_bench(self, *args):
        out, err, code = io.StringIO(), io.StringIO(), 0
        with redirect_stdout(out), redirect_stderr(err):
            try:
                bench.main(list(args))
            except SystemExit as left:
                code = left.code
        return out.getvalue(), code

    def kept(self, **more):
        file = tempfile.NamedTemporaryFile("w", suffix=".json")
        self.addCleanup(file.close)
        json.dump(run(**more), file)
        file.flush()
        return file.name

    def test_help_describes_each_option(self):
        for flag in ("-h", "--help"):
            out, code = self.run_bench(flag)
            self.assertEqual(code, 0)
            for word in ("compare", "curves", "--json", "--quick", "--readme", "list", "NAME"):
                self.assertIn(word, out)

    def test_list_names_every_row(self):
        out, _ = self.run_bench("list")
        for row in spec.ROWS:
            self.assertIn(row.what, out)

    def test_invalid_arguments_are_reported(self):
        self.assertIn("no row is called 'nonsense'", self.run_bench("nonsense")[1])
        self.assertIn("two files", self.run_bench("compare", "one.json")[1])
        self.assertIn("/nowhere/a.json cannot be read", self.run_bench("compare", "/nowhere/a.json", "/nowhere/b.json")[1])
        self.assertIn("needs all rows", self.run_bench("latency", "--readme")[1])
        self.assertIn("unrecognized", self.run_bench("--nonsense")[1])
        self.assertIn("no curve", self.run_bench("curves", "nonsense")[1])

    def test_a_file_that_is_not_a_run_is_refused(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write("[]")
            file.flush()
            self.assertIn("is not what", self.run_bench("compare", file.name, file.name)[1])

    def test_two_runs_are_compared(self):
        name = self.kept()
        self.assertIn("0 of 0 rows moved", self.run_bench("compare", name, name)[0])
        self.assertEqual(json.loads(self.run_bench("compare", name, name, "--json")[0]), [])


if __name__ == "__main__":
    unittest.main()
