"""Run a real Kubernetes on this machine, for tests and to try things: ./dev cluster VERB."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from cluster import host, programs, recipes, settings
from cluster.cluster import Cluster
from cluster.errors import ClusterError

EPOCHS_MAX = 1000


def up(cluster: Cluster, arguments: argparse.Namespace) -> int:
    began = time.monotonic()
    cluster.up(arguments.workers)
    print(f"cluster: {arguments.workers} workers are ready, {time.monotonic() - began:.0f} s")
    print("cluster: ./dev cluster kubectl get pods -A · ./dev cluster down")
    return 0


def down(cluster: Cluster, arguments: argparse.Namespace) -> int:
    cluster.down()
    return 0


def status(cluster: Cluster, arguments: argparse.Namespace) -> int:
    print(cluster.status())
    return 0 if cluster.is_up() else 1


def check(cluster: Cluster, arguments: argparse.Namespace) -> int:
    if lacks := host.missing() + programs.missing(cluster.paths):
        raise ClusterError("; ".join(lacks))
    cluster.check_free()  # else this shows after all other tests
    return 0


def make_programs(cluster: Cluster, arguments: argparse.Namespace) -> int:
    wanted = () if arguments.built else arguments.modules or programs.ALWAYS
    programs.ensure(cluster.paths, wanted)
    return 0


def prepare(cluster: Cluster, arguments: argparse.Namespace) -> int:
    cluster.prepare(recipes.of_all_cases(cluster.paths))
    print("cluster: prepared")
    return 0


def images(cluster: Cluster, arguments: argparse.Namespace) -> int:
    recipes_by_name = recipes.all_images(cluster.images, cluster.paths)
    for name in arguments.names or recipes_by_name:
        if name not in recipes_by_name:
            raise ClusterError(f"there is no image {name!r}, allowed: {', '.join(recipes_by_name)}")
        image = recipes_by_name[name]()
        cluster.load(image)
        print(image.reference)
    return 0


def load(cluster: Cluster, arguments: argparse.Namespace) -> int:
    for worker in cluster.workers:
        worker.import_image(arguments.archive.resolve())
    return 0


def test(cluster: Cluster, arguments: argparse.Namespace) -> int:
    """pytest takes this process's place."""
    words = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]
    words += ["-p", "harness.rings", f"--cases={settings.cache_folder() / 'cases.tsv'}"]
    more = list(arguments.words)
    if "--smoke" in more:
        more.remove("--smoke")
        more.append("--maxfail=1")
        os.environ["OPTCACHE_SMOKE"] = "1"
    os.execv(sys.executable, [*words, str(settings.HERE / "cases"), *more])


def demonstrate(cluster: Cluster, arguments: argparse.Namespace) -> int:
    from cluster import demo  # torch takes seconds to load

    return demo.run(cluster, arguments.epochs, arguments.source)


def tool(cluster: Cluster, arguments: argparse.Namespace) -> int:
    """kubectl and helm take this process's place."""
    if not cluster.is_up():
        raise ClusterError("no cluster runs here: ./dev cluster up")
    words = [str(word) for word in cluster.tool(arguments.verb, arguments.words)]
    os.execvp(words[0], words)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev cluster", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    verb = verbs.add_parser("up", help="start the cluster; programs and images that are missing are built first")
    verb.add_argument("--workers", type=int, default=settings.WORKERS, help="number of workers (default: %(default)s)")
    verb.set_defaults(act=up)
    verbs.add_parser("down", help="stop the cluster, and remove all that is left of one").set_defaults(act=down)
    verbs.add_parser("status", help="print what runs, and where the logs are").set_defaults(act=status)
    verbs.add_parser("check", help="print what this machine lacks for a cluster").set_defaults(act=check)
    verb = verbs.add_parser("programs", help="build Kubernetes from Go modules, if it is not built yet")
    modules = ", ".join(programs.PROGRAMS)
    verb.add_argument("modules", nargs="*", metavar="MODULE", help=f"of {modules}; default: those that a cluster needs")
    verb.add_argument("--built", action="store_true", help="build nothing, and let this checkout use the programs that are built")
    verb.set_defaults(act=make_programs)
    verb = verbs.add_parser("prepare", help="build the programs and images that tests use, but start nothing")
    verb.set_defaults(act=prepare)
    verb = verbs.add_parser("images", help="build our images again if they changed, and load them")
    verb.add_argument("names", nargs="*", metavar="NAME", help="images to build, for example operator cache-node sidecar; default: all")
    verb.set_defaults(act=images)
    verb = verbs.add_parser("load", help="load an image into all workers")
    verb.add_argument("archive", type=Path, help="file that `docker save` wrote, or an OCI archive")
    verb.set_defaults(act=load)
    verb = verbs.add_parser("demo", help="start a cluster if there is none, run a training job on it, and print figures; the cluster stays up")
    verb.add_argument("--epochs", type=int, default=3, help="number of epochs (default: %(default)s)")
    where = "source of the Dataset: a web server (default), or a bucket of versitygw"
    verb.add_argument("--source", choices=("http", "s3"), default="http", help=where)
    verb.set_defaults(act=demonstrate)
    verbs.add_parser("test", help="run the cases, or with --smoke the ten of ring 2; takes -k CASE and other arguments of pytest").set_defaults(act=test)
    for name in ("kubectl", "helm"):
        verbs.add_parser(name, help=f"run {name} as administrator").set_defaults(act=tool)
    # What follows these verbs is for other programs, options too.
    words = sys.argv[1:]
    own = words[:1] if words[:1] and words[0] in ("test", "kubectl", "helm") else words
    arguments = parser.parse_args(own)
    arguments.words = words[len(own) :]
    if arguments.verb == "programs" and not set(arguments.modules) <= set(programs.PROGRAMS):
        parser.error(f"modules are {', '.join(programs.PROGRAMS)}")
    if arguments.verb == "up" and not 1 <= arguments.workers <= settings.WORKERS_MAX:
        parser.error(f"--workers is {arguments.workers}, allowed: 1 to {settings.WORKERS_MAX}")
    if arguments.verb == "demo" and not 1 <= arguments.epochs <= EPOCHS_MAX:
        parser.error(f"--epochs is {arguments.epochs}, allowed: 1 to {EPOCHS_MAX}")
    return arguments


def main() -> int:
    arguments = parse()
    try:
        result = arguments.act(Cluster(), arguments)
        return int(result)
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ncluster: interrupted; ./dev cluster down ends what runs", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
