#!/usr/bin/env python3
"""Measures how much time a cache saves training jobs whose store is too slow for them."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import scenes
from harness.errors import HarnessError
from harness.progress import ProgressLine
from scenes import Scene

if TYPE_CHECKING:
    from harness.dataset import Dataset
    from report import PolicyResult, Setup

POLICIES = ("None", "LRU", "Pin", "Optimal")
REPOSITORY = Path(__file__).resolve().parents[2]
MORE = """\
There are two scenes: one job, and a sweep of four jobs.

Scene one: a PyTorch rank on each simulated machine reads its share of the images in the order
of a DistributedSampler, epoch after epoch. A sleep after each batch stands for the GPU. First the
ranks read files in memory, so that data is free. Then nginx serves the images, by a relay that
delivers 70 % of what the ranks read in the first run, to all connections together. `optcache up`
runs a node and a sidecar on each machine. The nodes have room for 30 % of the bytes. The job runs
once for each policy:

  None      keeps nothing
  LRU       evicts the samples that were used longest ago
  Pin       keeps the first samples until it is full, and evicts nothing
  Optimal   keeps the samples that its plan chooses, on the node that reads them next;
            it runs once more with a store that delivers 75 %

Scene sweep: four jobs on one machine read the same images at the same time, each in its own loop
and with its own seed. They leave decoding to the GPU, because two cores are too few to decode for
four jobs. The cache has room for 30 % of the bytes, and the store delivers 50 % of what the four
jobs read when data is free. The jobs run once for each policy.

The demo measures the time of an epoch, and how long the ranks wait for samples. It counts the
requests and bytes in nginx's access log, and compares them with the least that a cache of this size
needs. For the sweep, it prints what theory says beside what it measured. It checks the SHA-256 of
each sample, the order of each rank and the memory of each node.

With --source s3, the images lie in a bucket of a real server of S3, versitygw, which Go builds the
first time. All else is as with nginx: the relay, the runs, the table and the picture.

With --no-code-change, each rank reads the images from that bucket by boto3, and does not import
optcache. The same program runs twice: first it reads the server, then the S3 endpoint of its
machine's sidecar. There is no limit on the bandwidth, and no GPU. The table compares what the log
of the server counts with the least that a cache of this size needs.

examples:
  ./dev demo                                 both scenes: half of the images of Debian's
                                             wesnoth-1.16-data for one job, a quarter for four
  ./dev demo --scene sweep                   four jobs on one dataset
  ./dev demo --source s3                     the images lie in a bucket
  ./dev demo --quick                         one policy, two epochs
  ./dev demo --dataset ~/photos --epochs 3   your images, in one folder for each class
  ./dev demo --no-code-change                ranks of boto3, without and with optcache
  ./dev demo --redraw demo-out/demo.json     the table and the picture of an earlier run
"""


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev demo",
        description=__doc__,
        epilog=MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--scene", choices=scenes.NAMES, help="scene to run (default: both)")
    add("--source", choices=("http", "s3"), default="http", help="the store (default: %(default)s)")
    add("--dataset", type=Path, metavar="PATH", help="your own images, in one folder for each class")
    add("--policies", default=",".join(POLICIES), help="policies to run (default: %(default)s)")
    add("--epochs", type=int, help="how often each job reads all images (default: 3, in the sweep 4)")
    add("--machines", type=int, default=2, help="machines of scene one, each with one rank (default: 2)")
    add("--batch", type=int, help="images in a batch (default: 32, in the sweep 16)")
    add("--seed", type=int, default=0, help="seed of the first DistributedSampler (default: 0)")
    add("--out", type=Path, default=Path("demo-out"), help="folder for results (default: demo-out)")
    add("--quick", action="store_true", help="run only the policy Optimal, for two epochs")
    add("--no-code-change", action="store_true", help="read a bucket by boto3, without and with optcache")
    add("--keep", action="store_true", help="keep logs and state, and print their folder")
    add("--redraw", type=Path, metavar="JSON", help="run nothing, draw the results of an earlier run")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.policies, arguments.epochs = "Optimal", 2
    arguments.policies = list(dict.fromkeys(arguments.policies.split(",")))
    for policy in arguments.policies:
        if policy not in POLICIES:
            parser.error(f"policy {policy!r} is not known, allowed: {', '.join(POLICIES)}")
    for name, limit in (("epochs", 1000), ("machines", 64), ("batch", 4096)):
        if getattr(arguments, name) is not None and not 1 <= getattr(arguments, name) <= limit:
            parser.error(f"--{name} is {getattr(arguments, name)}, allowed: 1 to {limit}")
    if arguments.no_code_change and arguments.redraw:
        parser.error("--redraw draws runs without --no-code-change")
    if arguments.no_code_change and arguments.scene:
        parser.error("--no-code-change has no scenes")
    return arguments


def run(arguments: argparse.Namespace, folder: Path) -> int:
    # Not at the top: torch takes seconds to load, and --help and wrong arguments need none of it.
    from harness.s3_server import missing_program

    if arguments.no_code_change or arguments.source == "s3":
        if why := missing_program():
            raise HarnessError(why)
    line = ProgressLine()
    if arguments.no_code_change:
        return run_unchanged(arguments, folder, line)
    failures = []
    for scene in scenes.scenes(arguments):
        failures += run_scene(arguments, scene, folder / scene.name, line)
    return exit_code(failures)


def images(arguments: argparse.Namespace, parts: int, folder: Path) -> Dataset:
    """Those that the arguments name, or one of so many parts of the default ones."""
    from dataset import open_dataset, part_of, unpack_default

    if arguments.dataset:
        return open_dataset(arguments.dataset.resolve())
    every = open_dataset(unpack_default(REPOSITORY / "build" / "demo-data").resolve())
    return part_of(every, parts, folder / "images")


def run_scene(
    arguments: argparse.Namespace, scene: Scene, folder: Path, line: ProgressLine
) -> list[str]:
    """Shows its results, and returns a sentence for everything that was not as it must be."""
    from experiment import Experiment
    from harness.slow_link import SlowLink
    from sources import OPENERS

    folder.mkdir()
    line.say(scene.title, "reading all images once")
    dataset = images(arguments, scene.parts, folder)
    results = []
    with OPENERS[arguments.source](dataset, folder) as source, SlowLink(source.port) as link:
        programs = Path(os.environ["OPTCACHE_BIN_DIR"])
        experiment = Experiment(dataset, programs, folder, scene, source, link)
        experiment.prepare()
        free, failures = experiment.measure_free(
            lambda detail: line.say(f"{scene.title}, data in memory", detail)
        )
        setup = experiment.setup(free)
        for policy, share in scenes.runs(scene, arguments.policies):
            name = f"{scene.title}, {policy}, store {share:.2f}"
            result, wrong = experiment.run(
                policy, share, setup, lambda detail: line.say(name, detail)
            )
            results.append(result)
            failures += wrong
    line.end()
    show(setup, results, arguments.out)
    return [f"{scene.title}, {failure}" for failure in failures]


def run_unchanged(arguments: argparse.Namespace, folder: Path, line: ProgressLine) -> int:
    import no_code_change

    scene = no_code_change.scene(arguments)
    line.say("images", "reading all of them once")
    dataset = no_code_change.by_key(images(arguments, scene.parts, folder))
    programs = Path(os.environ["OPTCACHE_BIN_DIR"])
    comparison = no_code_change.Comparison(dataset, programs, folder, scene)
    reads, failures = comparison.run(line.say)
    line.end()
    arguments.out.mkdir(parents=True, exist_ok=True)
    file = arguments.out / "no-code-change.json"
    no_code_change.write_json(reads, file)
    print(f"{no_code_change.table(reads)}\n\n{file}")
    return exit_code(failures)


def exit_code(failures: list[str]) -> int:
    """Says what failed."""
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if failures else 0


def show(setup: Setup, results: list[PolicyResult], out: Path) -> None:
    import picture
    import report

    out.mkdir(parents=True, exist_ok=True)
    name = report.FILES[setup.scene]
    document, drawing = out / f"{name}.json", out / f"{name}.png"
    report.write_json(setup, results, document)
    picture.draw(setup, results, drawing)
    print(f"{report.table(setup, results)}\n\n{drawing}, {document}\n", flush=True)


def interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    arguments = parse_arguments()
    if arguments.redraw:
        from report import read_json

        show(*read_json(arguments.redraw), arguments.out)
        return 0
    if "OPTCACHE_BIN_DIR" not in os.environ:
        print("demo: OPTCACHE_BIN_DIR is not set. Run ./dev demo, which builds the programs", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, interrupt)  # so that what was started is stopped then, too
    signal.signal(signal.SIGHUP, interrupt)
    folder = Path(tempfile.mkdtemp(prefix="optcache-demo-"))
    try:
        return run(arguments, folder)
    except KeyboardInterrupt:
        print("\ndemo: interrupted. All programs that it started are stopped.", file=sys.stderr)
        return 130
    except HarnessError as error:
        print(f"\ndemo: {error}", file=sys.stderr)
        return 1
    finally:
        if arguments.keep:
            print(f"logs and state: {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
