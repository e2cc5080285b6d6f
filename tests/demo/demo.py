#!/usr/bin/env python3
"""Measures how much time a cache saves a training job whose store is too slow for it."""

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

from harness.errors import HarnessError
from harness.progress import ProgressLine

if TYPE_CHECKING:
    from harness.dataset import Dataset
    from report import PolicyResult, Setup

POLICIES = ("None", "LRU", "Pin", "Optimal")
STORE_SHARE = 0.70  # of what the ranks read when data is free: what the store delivers
WIDER_SHARE = 0.75  # for Optimal once more
REPOSITORY = Path(__file__).resolve().parents[2]
MORE = """\
What happens: a PyTorch rank on each simulated machine reads its share of the images in the order
of a DistributedSampler, epoch after epoch. A sleep after each batch stands for the GPU. First the
ranks read files in memory, so that data is free. Then nginx serves the images, by a relay that
delivers 70 % of what the ranks read in the first run, to all connections together. `optcache up` runs a node and a
sidecar on each machine. The nodes have room for 30 % of the bytes. The job runs once for each policy:

  None      keeps nothing
  LRU       evicts the samples that were used longest ago
  Pin       keeps the first samples until it is full, and evicts nothing
  Optimal   keeps the samples that its plan chooses, on the node that reads them next;
            it runs once more with a store that delivers 75 %

The demo measures the time of an epoch, and how long the ranks wait for samples. It counts the
requests and bytes in nginx's access log, and compares them with the least that a cache of this size
needs. It checks the SHA-256 of each sample, the order of each rank and the memory of each node.

With --no-code-change, each rank reads the images from a bucket by boto3, and does not import
optcache. The store is a real server of S3, versitygw, which Go builds the first time. The same
program runs twice: first it reads the server, then the S3 endpoint of its machine's sidecar. There
is no limit on the bandwidth, and no GPU. The table compares what the log of the server counts with
the least that a cache of this size needs.

examples:
  ./dev demo                                 every second image of Debian's wesnoth-1.16-data
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
    add("--dataset", type=Path, metavar="PATH", help="your own images, in one folder for each class")
    add("--policies", default=",".join(POLICIES), help="policies to run (default: %(default)s)")
    add("--epochs", type=int, default=3, help="how often each policy reads all images (default: 3)")
    add("--machines", type=int, default=2, help="machines, each with one rank (default: 2)")
    add("--batch", type=int, default=32, help="images in a batch (default: 32)")
    add("--seed", type=int, default=0, help="seed of the DistributedSampler (default: 0)")
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
        if not 1 <= getattr(arguments, name) <= limit:
            parser.error(f"--{name} is {getattr(arguments, name)}, allowed: 1 to {limit}")
    if arguments.no_code_change and arguments.redraw:
        parser.error("--redraw draws runs without --no-code-change")
    return arguments


def run(arguments: argparse.Namespace, folder: Path) -> int:
    # Not at the top: torch takes seconds to load, and --help and wrong arguments need none of it.
    from dataset import every_second, open_dataset, unpack_default
    from experiment import Experiment
    from harness.s3_server import missing_program
    from harness.slow_link import SlowLink
    from harness.store import Store

    if arguments.no_code_change and (why := missing_program()):
        raise HarnessError(why)
    line = ProgressLine()
    line.say("images", "reading all of them once")
    if arguments.dataset:
        dataset = open_dataset(arguments.dataset.resolve())
    else:
        every = open_dataset(unpack_default(REPOSITORY / "build" / "demo-data").resolve())
        dataset = every_second(every, folder / "images")
    if arguments.no_code_change:
        return run_unchanged(arguments, dataset, folder, line)
    results = []
    with Store(dataset.root, folder) as store, SlowLink(store.port) as link:
        experiment = Experiment(
            dataset=dataset,
            store=store,
            link=link,
            programs=Path(os.environ["OPTCACHE_BIN_DIR"]),
            folder=folder,
            machines=arguments.machines,
            epochs=arguments.epochs,
            batch=arguments.batch,
            seed=arguments.seed,
        )
        experiment.prepare()
        free, failures = experiment.measure_free(lambda detail: line.say("data in memory", detail))
        setup = experiment.setup(free)
        for policy, share in runs(arguments):
            name = f"{policy}, store {share:.2f}"
            result, wrong = experiment.run(
                policy, share, setup, lambda detail: line.say(name, detail)
            )
            results.append(result)
            failures += wrong
    line.end()
    show(setup, results, arguments.out)
    return exit_code(failures)


def run_unchanged(
    arguments: argparse.Namespace, dataset: Dataset, folder: Path, line: ProgressLine
) -> int:
    import no_code_change

    comparison = no_code_change.Comparison(
        dataset=no_code_change.by_key(dataset),
        programs=Path(os.environ["OPTCACHE_BIN_DIR"]),
        folder=folder,
        machines=arguments.machines,
        epochs=arguments.epochs,
        batch=arguments.batch,
        seed=arguments.seed,
    )
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


def runs(arguments: argparse.Namespace) -> list[tuple[str, float]]:
    """Policies, each with the store's share."""
    runs = [(policy, STORE_SHARE) for policy in arguments.policies]
    if not arguments.quick and "Optimal" in arguments.policies:
        runs.append(("Optimal", WIDER_SHARE))
    return runs


def show(setup: Setup, results: list[PolicyResult], out: Path) -> None:
    import picture
    import report

    out.mkdir(parents=True, exist_ok=True)
    report.write_json(setup, results, out / "demo.json")
    picture.draw(setup, results, out / "demo.png")
    print(report.table(setup, results))
    print(f"\n{out / 'demo.png'}, {out / 'demo.json'}")


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
