# shellcheck shell=bash disable=SC2154
# ./dev cluster: a real Kubernetes on this machine. The tool itself is tests/cluster.

# cluster VERB...: its programs and images are made where they are missing.
cluster() {
  need "${cluster_packages[@]}"
  export PYTHONPATH=$PWD/tests:$PWD/sidecar/python/src
  exec "$python" -m cluster "${@:---help}"
}
