# shellcheck shell=bash disable=SC2004,SC2034,SC2154
# ./dev test, ./dev ci: the rings of tests. docs/HACKING.md says which to run when.

# Whose tests run again under a sanitizer: parsers and owners of memory; users of threads. What costs
# most to build for it waits for --long.
asan_tests=(fuzz base dataset wire config handoff cache)
asan_long_tests=(
  fuzz-programs plan sampler simulation headspace coordination storage pki net metrics kube control
  cache-node sidecar operator cli
)
tsan_tests=(base storage handoff)
tsan_long_tests=(cache net metrics kube coordination control cache-node sidecar operator)

# compile_sanitized PRESET LIBRARY...: their unit tests alone; `fuzz` is the corpora.
compile_sanitized() {
  local preset=$1 targets
  shift
  targets=("${@//-/_}")
  compile "$preset" "${targets[@]/%/_test}"
}

# test_sanitized PRESET LIBRARY...: builds and runs them.
test_sanitized() {
  local preset=$1 labels
  compile_sanitized "$@"
  shift
  labels=$(IFS='|' && echo "$*")
  counted "$preset-$1" ctest --preset "$preset" -j "$tests_at_once" -L "^($labels)\$"
}

# The programs as processes that are killed, frozen, lied to and left alone, and two minutes of the soak. What a
# sanitizer finds ends a program, which training survives: so its reports are looked for, too.
test_sanitized_programs() {
  local reports=$PWD/build/asan/reports
  compile asan "${local_programs[@]/%//all}" tests/support/all
  rm -rf "$reports"
  mkdir -p "$reports"
  use_programs asan
  ASAN_OPTIONS=log_path=$reports/asan UBSAN_OPTIONS=log_path=$reports/ubsan:print_stacktrace=1 \
    OPTCACHE_CHAOS_SECONDS=120 OPTCACHE_CHAOS_WAIT_SECONDS=60 \
    counted asan-programs "$python" -m pytest -q -rs -p no:cacheprovider -p harness.rings -n "$jobs" \
    tests/integration/test_{bad_input,garbage,gone,kills,restart,sources}.py \
    tests/integration/test_chaos.py::test_chaos
  if compgen -G "$reports/*" >/dev/null; then
    head -n 60 "$reports"/*
    return 1
  fi
}

# test_python PYTHON LOG WORD...: by pytest; the words are its options and the paths of tests.
test_python() {
  local interpreter=$1 log=$2
  shift 2
  use_programs dev
  counted "$log" "$interpreter" -m pytest -q -rs --durations=20 -p no:cacheprovider -p harness.rings "$@"
}

# have_built PROGRAM...: whether they are there, which `./dev cluster programs` builds from Go modules.
have_built() {
  local program
  for program in "$@"; do
    [[ -x ${OPTCACHE_CLUSTER_BIN:-build/cluster/bin}/$program ]] || return 1
  done
}

# in_background NAME COMMAND...: while other steps leave the processors idle. `finish NAME` waits for it;
# end_totals ends it.
in_background() {
  local name=$1
  shift
  set -m # a process group of its own, in this session: another one would get a half of the processors
  (
    chrt --idle --pid 0 "$BASHPID" && ionice -c 3 -p "$BASHPID"
    set +e
    (set -e && "$@")
    echo "exit code $?"
  ) >"$logs/$name.txt" 2>&1 &
  backgrounds[$name]=$!
  set +m
}

# Now it is what is waited for. What it has said; a failure if it failed.
finish() {
  pgrep --pgroup "${backgrounds[$1]}" | xargs -r -n 1 chrt --all-tasks --other --pid 0 2>/dev/null || true # some have ended
  until grep -q '^exit code ' "$logs/$1.txt"; do sleep 1; done
  cat "$logs/$1.txt"
  grep -q '^exit code 0$' "$logs/$1.txt"
}

compile_all_sanitized() {
  compile_sanitized asan "${asan_tests[@]}"
  compile_sanitized tsan "${tsan_tests[@]}"
}

# With a real server of S3.
s3_tests=(tests/integration/test_{pages,s3,s3_checksums,s3_conformance,s3_endpoint}.py)

# Ring 1 without the suites that need an API server. Words are for pytest. Half of what a build compiles is
# unit tests: that goes on while other tests run the programs, and wait for much of their time.
test_on_loopback() {
  step "build (programs)" compile dev "${programs[@]/%//all}" tests/support/all bench_manifest
  in_background dev compile dev
  step "Python tests" test_python "$python" python "$@" tests/python
  step "integration tests" test_python "$python" integration "$@" "${s3_tests[@]/#/--ignore=}" tests/integration
  step "build (unit tests)" finish dev
  step "unit tests, fuzz corpora" counted dev ctest --preset dev -j "$tests_at_once" -LE '^api$'
}

test_s3() { test_python "$python" s3-tests "$@" "${s3_tests[@]}"; }

# The same against another server, Ceph.
test_second_s3() {
  OPTCACHE_TEST_S3=ceph test_python "$python" s3-second tests/integration/test_s3{,_conformance,_endpoint}.py
}

# One after the other: each starts etcd and kube-apiserver of its own.
test_api_server() { counted api ctest --preset dev -L '^api$'; }

test_ring1() {
  begin_totals test
  step packages need "${build_packages[@]}" "${test_packages[@]}"
  use_programs dev
  "$python" -m cluster programs --built # leads build/cluster/bin to those that are there
  test_on_loopback -n "$pytest_at_once"
  local missing=()
  if have_built versitygw; then
    step "tests with S3" test_s3 -n "$pytest_at_once"
  else
    missing+=(s3)
  fi
  if have_built etcd kube-apiserver kubectl helm; then
    step "API server" test_api_server
  else
    missing+=(kubernetes)
  fi
  if ((${#missing[@]})); then
    last_words="tests that need programs of these did not run: ${missing[*]}; ./dev cluster programs ${missing[*]} builds them"
  fi
}

# Ring 2: few cases on a real Kubernetes.
test_smoke() {
  use_programs dev
  counted cluster "$python" -m cluster test --smoke
}

# Ring 3, in parts of less than an hour each.
long_parts=8
test_long_part() {
  case $1 in
    1)
      # Alone each of the two takes an hour: ./dev test --long -k chaos.
      export OPTCACHE_CHAOS_SECONDS=${OPTCACHE_CHAOS_SECONDS:-300}
      export OPTCACHE_CHAOS_WAIT_SECONDS=${OPTCACHE_CHAOS_WAIT_SECONDS:-30} # a build goes on beside it
      test_on_loopback --order "$TEST_SEED"
      step "tests with S3" test_s3 --order "$TEST_SEED"
      step "API server" test_api_server
      ;;
    2)
      step "address and undefined behaviour sanitizers" test_sanitized asan "${asan_tests[@]}" "${asan_long_tests[@]}"
      step "programs with the address sanitizer" test_sanitized_programs
      step "thread sanitizer" test_sanitized tsan "${tsan_tests[@]}" "${tsan_long_tests[@]}"
      ;;
    3)
      step "build (dev)" compile dev
      step "ten more seeds" test_seeds
      step "virtual environment with torch 2.15" make_torch2_venv
      step "Python tests with torch 2.15" test_python .venv-torch2/bin/python python-torch2 tests/python
      step "build (release), warnings are errors" compile_strictly
      step demo ./dev demo --quick
      step "demo from S3" ./dev demo --source s3 --quick
      step "demo without changing code" ./dev demo --no-code-change --quick
      step benchmarks ./dev bench --quick
      ;;
    4)
      frameworks_steps
      step "packages of Ceph" need "${ceph_packages[@]}"
      step "tests with a second server of S3, Ceph" test_second_s3
      ;;
    *)
      step "build (dev)" compile dev
      step "Kubernetes, cases $(($1 - 4)) of 4" test_cluster "--part=$(($1 - 4))/4" --order "$TEST_SEED"
      ;;
  esac
}

# test_named WORDS: the integration tests that pytest's -k chooses by them, long ones too.
test_named() {
  begin_totals "test --long -k $1"
  export OPTCACHE_LONG=1
  export TEST_SEED=${TEST_SEED:-$(date +%s)}
  say "TEST_SEED=$TEST_SEED"
  step packages need "${build_packages[@]}" "${test_packages[@]}" "${wheel_packages[@]}" debootstrap
  step "build (programs)" compile dev "${programs[@]/%//all}" tests/support/all
  step "integration tests" test_python "$python" integration -k "$1" tests/integration
}

# test_long [K/N]: all of it or one part.
test_long() {
  local first=1 last=$long_parts part
  if [[ -n ${1:-} ]]; then
    [[ $1 =~ ^[1-$long_parts]/$long_parts$ ]] || {
      say "--part is 1/$long_parts to $long_parts/$long_parts"
      exit 2
    }
    first=${1%/*} last=${1%/*}
  fi
  begin_totals "test --long ${1:-}"
  export OPTCACHE_LONG=1
  export TEST_SEED=${TEST_SEED:-$(date +%s)}
  say "TEST_SEED=$TEST_SEED"
  step packages need "${build_packages[@]}" "${test_packages[@]}" "${cluster_packages[@]}" "${wheel_packages[@]}"
  use_programs dev
  step "programs of Kubernetes and S3" "$python" -m cluster programs kubernetes s3
  for ((part = first; part <= last; ++part)); do test_long_part $part; done
}

# Not the tests, and beside the build that people use, whose compiler may warn of more than ours.
compile_strictly() {
  cmake --preset release -B build/release-strict -D OPTCACHE_WERROR=ON >/dev/null
  cmake --build build/release-strict --target "${programs[@]/%//all}" benchmarks -- --quiet
}

# All cases on a real Kubernetes, or those that words for pytest choose.
test_cluster() {
  make_room 8 build/asan build/tsan # images and three workers take 5 GB
  use_programs dev
  counted cluster "$python" -m cluster test "$@"
}

# The randomised tests with seeds that are new.
test_seeds() {
  local seed
  for ((seed = TEST_SEED + 1; seed <= TEST_SEED + 10; ++seed)); do
    TEST_SEED=$seed OPTCACHE_LONG=0 \
      counted "seed-$seed" ctest --preset dev -j "$tests_at_once" -L '^(plan|wire|coordination|cache|cache-node|sidecar)$'
  done
}

make_torch2_venv() {
  need python3-venv
  [[ -x .venv-torch2/bin/python ]] || "$python" -m venv .venv-torch2
  .venv-torch2/bin/pip install --quiet 'torch==2.15.*' 'torchvision==0.29.*' numpy pytest boto3 matplotlib \
    accelerate pytorch-lightning spdl-core torchdata
  .venv-torch2/bin/pip install --quiet --no-deps 'nemo_toolkit==1.23.0' # for Megatron's samplers
}

# All of PyPI's packages that tests know, with the newest torch that all of them take.
make_frameworks_venv() {
  local pip=(.venv-frameworks/bin/python -m pip install --quiet)
  need python3-venv
  [[ -x .venv-frameworks/bin/pip ]] || "$python" -m venv .venv-frameworks
  "${pip[@]}" accelerate==1.15.0 mosaicml==0.32.1 mosaicml-streaming==0.13.0 numpy pytest pytorch-lightning==2.6.6 \
    spdl-core==0.8.0 torch==2.7.0 torchdata==0.11.0 torchvision==0.22.0 webdataset==1.0.2
  # Clients of S3, all named: else pip tries every version that might go with another.
  "${pip[@]}" aiobotocore==3.10.0 awscli==1.46.3 boto3==1.43.117 datasets==4.8.5 litdata==0.2.76 obstore==0.12.1 s3fs==2026.2.0 \
    s3torchconnector==1.5.0
  "${pip[@]}" flask==3.1.3 flask-cors==6.0.5 moto==5.2.5 # AWS's token service, as a process
  "${pip[@]}" grain==0.2.18
  "${pip[@]}" zarr==3.1.6 # by fsspec, as pandas and pyarrow are, which datasets needs
  "${pip[@]}" --no-deps nemo_toolkit==1.23.0 # for Megatron's samplers
}

frameworks() {
  use_programs dev
  # Tests skip what is missing; here nothing may be.
  .venv-frameworks/bin/python -W ignore -c \
    'import accelerate, awscli, boto3, composer, datasets, flask_cors, grain, litdata, moto, nemo, pandas, pyarrow, pytorch_lightning, s3fs, s3torchconnector, spdl.source, streaming, torchdata.stateful_dataloader, webdataset, zarr'
  # One that fails does not keep the later ones from running.
  local failed=0 with=.venv-frameworks/bin/python
  test_python $with python-frameworks tests/python || failed=1
  # Trainers are slow to start.
  OPTCACHE_LONG=1 test_python $with integration-frameworks tests/integration/test_frameworks.py || failed=1
  test_python $with integration-tar tests/integration/test_{tar,pages}.py || failed=1
  test_python $with integration-s3-endpoint tests/integration/test_s3_{away,conformance,endpoint,role}.py || failed=1
  test_python $with integration-fsspec tests/integration/test_fsspec.py || failed=1
  return $failed
}

frameworks_steps() {
  step "build (dev)" compile dev
  step "virtual environment with frameworks" make_frameworks_venv
  step "tests with frameworks" frameworks
}

test_frameworks() {
  begin_totals "test frameworks"
  step packages need "${build_packages[@]}" "${test_packages[@]}"
  frameworks_steps
}

test_all() {
  case ${1:-} in
    "") test_ring1 ;;
    --long)
      [[ $# -eq 1 || ($# -eq 3 && $2 =~ ^(--part|-k)$) ]] || unknown "${*:2}"
      if [[ ${2:-} == -k ]]; then test_named "$3"; else test_long "${3:-}"; fi
      ;;
    frameworks) test_frameworks ;;
    *) unknown "$1" ;;
  esac
}

# What must pass before a change is merged: rings 1 and 2, and the sanitizers where they pay. The programs of
# Kubernetes are built beside ring 1, and the sanitizers' beside Kubernetes, which waits for most of its time.
ci() {
  begin_totals ci
  step packages need "${build_packages[@]}" "${quick_packages[@]}" "${test_packages[@]}" "${cluster_packages[@]}"
  use_programs dev
  step "root, namespaces, Go" "$python" -m cluster check
  quick_steps
  in_background s3 "$python" -m cluster programs s3
  in_background cluster-parts "$python" -m cluster prepare
  test_on_loopback -n "$pytest_at_once"
  step "server of S3" finish s3
  step "tests with S3" test_s3 -n "$pytest_at_once"
  step "programs and images of Kubernetes" finish cluster-parts
  in_background sanitized compile_all_sanitized
  step "API server" test_api_server
  step "Kubernetes, ring 2" test_smoke
  step "build (sanitizers)" finish sanitized
  step "address and undefined behaviour sanitizers" test_sanitized asan "${asan_tests[@]}"
  step "thread sanitizer" test_sanitized tsan "${tsan_tests[@]}"
}
