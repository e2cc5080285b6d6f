#!/usr/bin/env python3
"""What a cache that knows what comes next is worth: a training job on four simulated machines."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

from harness.errors import HarnessError
from progress import ProgressLine

POLICIES = ("Optimal", "Pin", "LRU", "None")
REPOSITORY = Path(__file__).resolve().parents[2]
MORE = """\
What happens: nginx serves the images. `optcache up` runs one node and one sidecar a machine; the
nodes have room for 30 % of the bytes, arenas and transit reserves take 2 % beside. A PyTorch
rank a machine reads its share of the images in the order of a DistributedSampler, epoch after
epoch, once for each policy:

  Optimal   keeps what the plan says, at the node that reads it next
  Pin       keeps what came first until it is full, and evicts nothing
  LRU       evicts what was used longest ago
  None      keeps nothing

What is checked: the SHA-256 of every sample, the order of every rank, the memory of every node.
What is counted: the GETs in nginx's access log, against the least that a cache of that size needs.

examples:
  ./dev demo                                 14,059 images of Debian's wesnoth-1.16-data
  ./dev demo --quick                         one policy, two epochs
  ./dev demo --dataset ~/photos --epochs 3   your images, in one folder a class
"""


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev demo",
        description=__doc__,
        epilog=MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--dataset", type=Path, metavar="PATH", help="images of your own, in one folder a class")
    add("--policies", default=",".join(POLICIES), help="which, by comma (default: %(default)s)")
    add("--epochs", type=int, default=5, help="times that all images are read (default: 5)")
    add("--machines", type=int, default=4, help="machines, and ranks (default: 4)")
    add("--batch", type=int, default=16, help="images a batch (default: 16)")
    add("--seed", type=int, default=0, help="of the DistributedSampler (default: 0)")
    add("--out", type=Path, default=Path("demo-out"), help="for results (default: demo-out)")
    add("--quick", action="store_true", help="policy Optimal alone, two epochs")
    add("--keep", action="store_true", help="keep logs and state, and say where")
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
    return arguments


def run(arguments: argparse.Namespace, folder: Path) -> int:
    # Not at the top: torch takes seconds to load, and --help and wrong arguments need none of it.
    import picture
    import report
    from dataset import open_dataset, unpack_default
    from experiment import Experiment
    from harness.store import Store

    line = ProgressLine()
    line.say("images", "looking")
    root = arguments.dataset or unpack_default(REPOSITORY / "build" / "demo-data")
    dataset = open_dataset(root.resolve())
    results, failures = [], []
    with Store(dataset.root, folder) as store:
        experiment = Experiment(
            dataset=dataset,
            store=store,
            programs=Path(os.environ["OPTCACHE_BIN_DIR"]),
            folder=folder,
            machines=arguments.machines,
            epochs=arguments.epochs,
            batch=arguments.batch,
            seed=arguments.seed,
        )
        experiment.prepare()
        for policy in arguments.policies:
            result, wrong = experiment.run(policy, lambda detail: line.say(policy, detail))
            results.append(result)
            failures += wrong
    line.end()
    arguments.out.mkdir(parents=True, exist_ok=True)
    report.write_json(experiment.setup, results, arguments.out / "demo.json")
    picture.draw(experiment.setup, results, arguments.out / "demo.png")
    print(report.table(experiment.setup, results))
    print(f"\n{arguments.out / 'demo.png'}, {arguments.out / 'demo.json'}")
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if failures else 0


def interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    arguments = parse_arguments()
    if "OPTCACHE_BIN_DIR" not in os.environ:
        print("demo: where are the programs? Run ./dev demo, which builds them", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, interrupt)  # so that what was started is stopped then, too
    signal.signal(signal.SIGHUP, interrupt)
    folder = Path(tempfile.mkdtemp(prefix="optcache-demo-"))
    try:
        return run(arguments, folder)
    except KeyboardInterrupt:
        print("\ndemo: interrupted; everything it started is stopped", file=sys.stderr)
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
