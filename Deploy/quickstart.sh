#!/usr/bin/env bash
# From a fresh checkout on Debian 12 with a Swift toolchain to the main job: installs what is missing, builds, shows the demo.
set -euo pipefail
cd "$(dirname "$0")/.."

source Deploy/needs.sh
install_missing librdkafka-dev libsqlite3-dev libpq-dev libssl-dev pkg-config
need_swift

echo "Building (a minute or two the first time) …"
swift build -c release --product fanout
program=$(swift build -c release --show-bin-path)/fanout
"$program" demo
printf '\nThe program is %s\n' "$program"
