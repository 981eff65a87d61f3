#!/usr/bin/env bash
# Checks formatting, builds everything, and runs all tests.
#
#   Deploy/test.sh                       everything, also under Address and Thread Sanitizer, and the fuzzers for a while
#   Deploy/test.sh --filter EmitTests    what `swift test` takes
#
# With ../shared beside the checkout (or FANOUT_TEST_SHARED naming it) also on a real Kafka, which is started for the purpose,
# and on its data; FANOUT_TEST_BROKERS names brokers to use instead. The tests start PostgreSQL themselves, unless
# FANOUT_TEST_POSTGRES gives the address of one that takes 500 connections. FANOUT_TEST_NEWER_LIBRDKAFKA names a folder with a
# newer librdkafka.so.1 than the system's to test on as well; otherwise one is downloaded. With CI=true nothing may be skipped
# that could be run; what a Citus cluster is for can't, unless FANOUT_TEST_CITUS gives the address of its coordinator.
set -euo pipefail
cd "$(dirname "$0")/.."

temp=$(mktemp -d "${TMPDIR:-/tmp}/fanout-tests-XXXXXX")
files=$temp
kafka=

clean_up() {
  local status=$?
  trap - EXIT
  # What a killed test runner may have left behind.
  for file in "$temp"/pids/*; do
    if [[ -e $file ]]; then kill -KILL "$(basename "$file")" 2>/dev/null || true; fi
  done
  if [[ -n $kafka ]]; then "$kafka" stop --dir "$temp/kafka" >/dev/null 2>&1 || true; fi
  rm -rf "$temp" "$files"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

step() { printf '\n== %s\n' "$*"; }
fail() {
  printf '\nFAILED: %s\n' "$*" >&2
  exit 1
}

step "What is needed"
source Deploy/needs.sh
need_swift
install_missing librdkafka-dev libsqlite3-dev libpq-dev libssl-dev openssl pkg-config postgresql-15
command -v java >/dev/null || install_missing default-jre-headless
command -v python3 >/dev/null || install_missing python3
echo "all there: $(swift --version 2>/dev/null | head -1)"

step "Formatting"
formatting=clean
swift format lint --strict --recursive Package.swift Sources Tests || formatting=unclean

step "Build"
swift build -c release --build-tests

step "Servers"
shared=${FANOUT_TEST_SHARED:-../shared}
if [[ -d $shared ]]; then
  FANOUT_TEST_SHARED=$(cd "$shared" && pwd)
  export FANOUT_TEST_SHARED
  if [[ -z ${FANOUT_TEST_BROKERS:-} && -x $FANOUT_TEST_SHARED/kafka/kafka ]]; then
    kafka=$FANOUT_TEST_SHARED/kafka/kafka
    # Again, as one in 64 of the tool's random ids begins with a dash, which Kafka's formatter takes for an option.
    for _ in 1 2 3; do
      if KAFKA_HEAP=${KAFKA_HEAP:-384m} "$kafka" start --dir "$temp/kafka" >"$temp/kafka.out"; then break; fi
    done
    FANOUT_TEST_BROKERS=$(sed -n 's/^bootstrap=//p' "$temp/kafka.out")
    [[ -n $FANOUT_TEST_BROKERS ]] || fail "Kafka did not say where it listens: $(cat "$temp/kafka.out")"
  fi
fi
export FANOUT_TEST_BROKERS=${FANOUT_TEST_BROKERS:-}
# For logins that Debian's librdkafka is too old for.
export FANOUT_TEST_NEWER_LIBRDKAFKA=${FANOUT_TEST_NEWER_LIBRDKAFKA:-}
if [[ -z $FANOUT_TEST_NEWER_LIBRDKAFKA && -d $shared ]]; then
  if Deploy/newer-librdkafka.sh "$temp/newer"; then
    FANOUT_TEST_NEWER_LIBRDKAFKA=$temp/newer
  elif [[ ${CI:-} == true ]]; then
    fail "there is no newer librdkafka to test on"
  fi
fi
echo "shared data: ${FANOUT_TEST_SHARED:-none}; Kafka: ${FANOUT_TEST_BROKERS:-none, only the embedded broker}"
echo "newer librdkafka: ${FANOUT_TEST_NEWER_LIBRDKAFKA:-none}; Citus: ${FANOUT_TEST_CITUS:-none}"

step "Tests"
mkdir "$temp/pids"
export FANOUT_TEST_PIDS=$temp/pids
# Stores wait for the disk at every commit; in memory they need not.
if [[ -w /dev/shm ]] && (($(df --output=avail -k /dev/shm | tail -1) > 2000000)); then
  files=$(mktemp -d /dev/shm/fanout-tests-XXXXXX)
fi
status=0
: >"$temp/tests.log"
if [[ -n $FANOUT_TEST_NEWER_LIBRDKAFKA && $# -eq 0 ]]; then
  TMPDIR=$files LD_LIBRARY_PATH=$FANOUT_TEST_NEWER_LIBRDKAFKA \
    swift test -c release --skip-build --filter '^KafkaTests' 2>&1 | tee -a "$temp/tests.log" || status=$?
fi
TMPDIR=$files swift test -c release --skip-build "$@" 2>&1 | tee -a "$temp/tests.log" || status=$?

step "Summary"
skipped=$(grep -c 'SKIPPED' "$temp/tests.log" || true)
# What a machine does not allow is no omission, nor is Citus, which can't be installed here.
needless=$(grep 'SKIPPED' "$temp/tests.log" | grep -vcE 'SKIPPED: no (Citus|file system can be mounted); ' || true)
if [[ -n ${FANOUT_TEST_CITUS:-} ]]; then needless=$skipped; fi
grep -E '✘ (Test|Suite)|recorded an issue' "$temp/tests.log" || true
grep -E 'Test run with' "$temp/tests.log" || true
grep 'SKIPPED' "$temp/tests.log" || true
((status == 0)) || fail "swift test ended with status $status"
grep -qE 'Test run with [1-9]' "$temp/tests.log" || fail "no test was run"
if [[ ${CI:-} == true && -n ${FANOUT_TEST_SHARED:-} ]] && ((needless > 0)); then
  fail "$needless tests were skipped, although ../shared is there"
fi
if (($# == 0)); then
  step "Sanitizers"
  Deploy/sanitize.sh
  step "Fuzzers"
  Deploy/fuzz.sh
fi
[[ $formatting == clean ]] || fail "all tests passed, but the formatting is not as .swift-format says; see above"
echo "PASSED, $skipped skipped"
