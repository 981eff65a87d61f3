#!/usr/bin/env bash
# Looks for inputs that crash, hang or bloat the program, or make it break a promise of its own: libFuzzer, led by coverage, under
# Address Sanitizer. It begins with the inputs in Tests, and with what it found interesting before.
#
#   Deploy/fuzz.sh                          each target for 20 seconds
#   Deploy/fuzz.sh --seconds 3600           each for an hour
#   Deploy/fuzz.sh --seconds 60 events      one of: events letters keys options addresses
#
# An input that fails is left in .build/fuzz/failed. It belongs into Tests/FuzzingTests/Corpus, where a test runs it from then on.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=20
if [[ ${1:-} == --seconds ]]; then
  seconds=${2:?usage: Deploy/fuzz.sh [--seconds N] [TARGET…]}
  shift 2
fi
targets=("$@")
((${#targets[@]} > 0)) || targets=(events letters keys options addresses)

FANOUT_FUZZ=1 swift build -c release --product fuzz --scratch-path .build/fuzz --sanitize fuzzer --sanitize address \
  -Xswiftc -sanitize-coverage=edge,trace-cmp,indirect-calls,inline-8bit-counters,pc-table

# What a valid event takes is a few kilobytes; what none may take is a small part of a second, and memory of any size.
limits=(-max_len=6000 -timeout=5 -rss_limit_mb=600 -malloc_limit_mb=64)
export SWIFT_BACKTRACE=enable=no ASAN_OPTIONS=quarantine_size_mb=16
mkdir -p .build/fuzz/failed
failed=()
for target in "${targets[@]}"; do
  found=.build/fuzz/found/$target
  mkdir -p "$found"
  corpus=("$found" "Tests/FuzzingTests/Corpus/$target")
  if [[ $target == events ]]; then corpus+=(Tests/SocialEventsTests/Corpus); fi
  log=.build/fuzz/$target.log
  status=0
  FANOUT_FUZZ_TARGET=$target .build/fuzz/release/fuzz "${corpus[@]}" -max_total_time="$seconds" "${limits[@]}" \
    -artifact_prefix=".build/fuzz/failed/$target-" >"$log" 2>&1 || status=$?
  # The coverage at the beginning and at the end.
  printf '%s: ' "$target"
  grep -aE '(INITED|DONE) ' "$log" | grep -aoE '(INITED|DONE) +cov: [0-9]+ ft: [0-9]+|exec/s: [0-9]+' | tr -s '\n ' ' '
  grep -aoE 'Done [0-9]+ runs' "$log" || echo
  if ((status > 0)); then
    grep -aE 'fuzz: |SUMMARY|Test unit written' "$log" || tail -n 20 "$log"
    failed+=("$target")
  fi
done
((${#failed[@]} == 0)) || { echo "FAILED: ${failed[*]}" >&2; exit 1; }
