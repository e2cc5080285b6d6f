# shellcheck shell=bash disable=SC2154
# ./dev cluster: a real Kubernetes on this machine. The tool itself is tests/cluster.

# cluster VERB...: its programs and images are made where they are missing.
cluster() {
  case ${1:---help} in
    kubectl | helm) ;; # their words are for other programs
    test)
      cluster_test "${@:2}"
      return
      ;;
    *) if asks_for_text "$@" || [[ -z ${1:-} ]]; then python_verb -m cluster "${@:---help}"; fi ;;
  esac
  need "${cluster_packages[@]}"
  case ${1:-} in
    images | demo)
      need "${build_packages[@]}" "${python_packages[@]}"
      step "build (dev)" compile_programs dev "${programs[@]}"
      use_programs dev
      ;;
  esac
  export PYTHONPATH=$PWD/tests:$PWD/sidecar/python/src
  exec "$python" -m cluster "${@:---help}"
}

cluster_test() {
  if asks_for_text "$@"; then
    say "cluster test [--smoke] [--part K/N] [-k EXPRESSION] [ARGS OF PYTEST] runs cases on a real Kubernetes, as root"
    say "--smoke runs the ten cases of ring 2, --part 1/3 a third of all cases, -k the cases with such a name"
    return
  fi
  begin_totals "cluster test${*:+ $*}"
  step packages need "${cluster_packages[@]}" "${build_packages[@]}" "${python_packages[@]}"
  step "build (dev)" compile_programs dev "${programs[@]}"
  step "Kubernetes" test_cluster "$@"
}
