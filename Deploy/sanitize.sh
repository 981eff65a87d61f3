#!/usr/bin/env bash
# Runs the unit tests, and those of the command on the embedded broker, under Address Sanitizer and Thread Sanitizer.
#
#   Deploy/sanitize.sh                             both, side by side
#   Deploy/sanitize.sh thread                      one of them
#   Deploy/sanitize.sh address --filter EmitTests  what `swift test` takes
#
# Fails if a test does, and if anything is reported of the tests or of a process that they start.
set -euo pipefail
cd "$(dirname "$0")/.."

sanitizers=()
while [[ ${1:-} == address || ${1:-} == thread ]]; do
  sanitizers+=("$1")
  shift
done
((${#sanitizers[@]} > 0)) || sanitizers=(address thread)

temp=$(mktemp -d "${TMPDIR:-/tmp}/fanout-sanitize-XXXXXX")
files=$temp
mkdir "$temp/pids" "$temp/reports"
clean_up() {
  local status=$?
  trap - EXIT
  for file in "$temp"/pids/*; do
    if [[ -e $file ]]; then kill -KILL "$(basename "$file")" 2>/dev/null || true; fi
  done
  rm -rf "$temp" "$files"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Swift's Foundation, which only the tests use, leaks when it reads an empty file and when it runs a process.
cat >"$temp/leaks" <<'END'
leak:20FoundationEssentials17readBytesFromFile
leak:10Foundation7ProcessC3run
END

# Every array that is made empty writes its count of zero to the one storage that they all share.
echo race:_swiftEmptyArrayStorage >"$temp/races"

# A report goes to a file, as nobody may read what a process writes to standard error.
options=exitcode=66:log_path=$temp/reports
export ASAN_OPTIONS=$options/address:detect_leaks=1 TSAN_OPTIONS=$options/thread:suppressions=$temp/races
export LSAN_OPTIONS=suppressions=$temp/leaks:print_suppressions=0

# Without a real Kafka and its data.
unset FANOUT_TEST_BROKERS FANOUT_TEST_SHARED FANOUT_TEST_CITUS
export FANOUT_TEST_PIDS=$temp/pids FANOUT_HISTORIES=${FANOUT_HISTORIES:-100} FANOUT_SCHEDULES=${FANOUT_SCHEDULES:-20}
if [[ -w /dev/shm ]] && (($(df --output=avail -k /dev/shm | tail -1) > 2000000)); then
  files=$(mktemp -d /dev/shm/fanout-sanitize-XXXXXX)
fi

run() {
  local sanitizer=$1 selection=("${@:2}")
  local build=.build/$sanitizer
  export FANOUT_SANITIZE=$sanitizer
  if ((${#selection[@]} == 0)); then
    selection=(
      # What is a matter of PostgreSQL's statements, and takes long: workers on it are tested, and many threads of one process.
      --skip 'Citus|Interleaving|Upgrade|Plan|SQLView|Postgres(?!Store|Conformance|GeneratedHistory)'
      # Many short processes, of which each takes long to start here.
      --skip 'Scaling|CommandLineTests/(help|wrongUsage)'
      # A library that is put before all others would come before the sanitizer's own.
      --skip 'StallTests|DiskTests/failing')
    # A deinit that ends the process, as that of Output does when the disk is full, is to Thread Sanitizer one without an end.
    if [[ $sanitizer == thread ]]; then selection+=(--skip CommandLineTests/fullDisk); fi
  fi
  echo "$SECONDS s: building"
  swift build --build-tests --sanitize "$sanitizer" --scratch-path "$build"
  echo "$SECONDS s: testing"
  # Processes that tests start are this one.
  grep -q "__${sanitizer:0:1}san_init" "$build/debug/fanout"
  TMPDIR=$files swift test --skip-build --sanitize "$sanitizer" --scratch-path "$build" --disable-xctest "${selection[@]}"
}

declare -A pids
for sanitizer in "${sanitizers[@]}"; do
  run "$sanitizer" "$@" >"$temp/$sanitizer.log" 2>&1 &
  pids[$sanitizer]=$!
done

failed=()
for sanitizer in "${sanitizers[@]}"; do
  status=0
  wait "${pids[$sanitizer]}" || status=$?
  log=$temp/$sanitizer.log
  printf -- '-- %s sanitizer\n' "$sanitizer"
  grep -E '✘|↳' "$log" || true
  grep 'Test run with [1-9]' "$log" || status=1
  for report in "$temp/reports/$sanitizer".*; do
    [[ -e $report ]] || continue
    cat "$report"
    status=1
  done
  if ((status > 0)); then
    tail -n 30 "$log"
    failed+=("$sanitizer")
  fi
done
((${#failed[@]} == 0)) || { echo "FAILED under: ${failed[*]}" >&2; exit 1; }
