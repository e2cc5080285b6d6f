# shellcheck shell=bash
# Steps with a name and a time, and the count of tests over all of them.

logs=build/logs
failed_step=""

say() { printf 'dev: %s\n' "$*"; }

# step NAME COMMAND...: runs the command (or function) in a subshell where the first failure ends it.
step() {
  local name=$1 code=0
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
  if ((code != 0)); then
    failed_step=$name
    say "FAILED: $name, after $((SECONDS - begin)) s (exit code $code)"
    exit 1
  fi
  say "$name: $((SECONDS - begin)) s"
}

# counted LOG COMMAND...: runs a test runner, keeps its output for print_totals and shows it without
# CTest's lines on tests that passed.
counted() {
  local log=$logs/$1.log
  shift
  mkdir -p "$logs"
  "$@" 2>&1 | tee "$log" | sed -uE '/^ +Start +[0-9]+: /d; / Passed +[0-9.]+ sec$/d'
}

# Prints `N passed, N failed` over the runners' summaries: CTest's and pytest's.
print_totals() {
  local passed failed
  read -r passed failed < <(
    cat "$logs"/*.log 2>/dev/null | awk '
      / tests passed, .* tests? failed out of / {
        for (i = 2; i <= NF; i++) {
          if ($i ~ /^tests?$/ && $(i + 1) == "failed") { bad = $(i - 1) }
        }
        failed += bad; passed += $NF - bad
      }
      /(passed|failed|error).* in [0-9.]+s/ {
        for (i = 2; i <= NF; i++) {
          if ($i ~ /^passed/) passed += $(i - 1)
          if ($i ~ /^(failed|errors?)/) failed += $(i - 1)
        }
      }
      END { printf "%d %d\n", passed, failed }'
  ) || true
  # A step that stopped before its runner could count is a failure too.
  if [[ -n $failed_step && ${failed:-0} -eq 0 ]]; then failed=1; fi
  printf '%d passed, %d failed\n' "${passed:-0}" "${failed:-0}"
}
