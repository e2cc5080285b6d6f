# shellcheck shell=bash
# Steps with a name and a time, and the count of tests over all of them.

logs=build/logs
with_totals=""

say() { printf 'dev: %s\n' "$*"; }

# step NAME COMMAND...: runs the command (or function) in a subshell where the first failure ends it.
step() {
  local name=$1 code=0 result=passed
  shift
  local begin=$SECONDS
  printf '\n== %s\n' "$name"
  set +e
  (
    set -e
    "$@"
  )
  code=$?
  set -e
  if ((code != 0)); then result=failed; fi
  if [[ -n ${with_totals:-} ]]; then printf '%s\t%d\t%s\n' "$name" $((SECONDS - begin)) $result >>"$logs/steps.tsv"; fi
  if ((code != 0)); then
    say "FAILED: $name, after $((SECONDS - begin)) s (exit code $code)"
    exit 1
  fi
  say "$name: $((SECONDS - begin)) s"
}

# make_room GB PATH...: if less is free here, removes what can be made again.
make_room() {
  local wanted=$1 free
  shift
  free=$(df --output=avail -B 1G . | tail -n 1)
  if ((free >= wanted)); then return; fi
  say "only $((free)) GB are free here: $* go"
  rm -rf "$@"
}

# counted LOG COMMAND...: runs a test runner, keeps its output for end_totals and shows it without
# CTest's lines on tests that passed.
counted() {
  local log=$logs/$1.log
  shift
  mkdir -p "$logs"
  "$@" 2>&1 | tee "$log" | sed -uE '/^ +Start +[0-9]+: /d; / Passed +[0-9.]+ sec$/d'
}

# begin_totals NAME: from here on steps are noted; whatever ends the script, it ends with their table and
# the totals, which are also appended to a file of this machine, with what $OPTCACHE_RUN_NOTE says of the run.
begin_totals() {
  run_name=$1${OPTCACHE_RUN_NOTE:+ ($OPTCACHE_RUN_NOTE)}
  rm -rf "$logs"
  mkdir -p "$logs"
  : >"$logs/steps.tsv"
  declare -gA backgrounds=() # the process group of each
  with_totals=1
  trap end_totals EXIT
}

# Where every checkout finds what outlives it; tests/cluster/settings.py knows it, too.
cache_folder() { echo "${XDG_CACHE_HOME:-$HOME/.cache}/optcache"; }

end_totals() {
  local code=$? group
  for group in "${backgrounds[@]}"; do kill -- "-$group" 2>/dev/null || true; done
  PYTHONPATH=tests python3 -m harness.totals "$logs" tests/skips.txt "$(cache_folder)/runs.tsv" "$run_name" "$code" || ((code)) || code=1
  if [[ -n ${last_words:-} ]]; then say "$last_words"; fi
  exit "$code"
}
