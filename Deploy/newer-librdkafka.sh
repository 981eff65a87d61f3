#!/usr/bin/env bash
# Puts a librdkafka newer than Debian's into a folder: with LD_LIBRARY_PATH naming that folder, the same program runs on it.
#
#   Deploy/newer-librdkafka.sh FOLDER
#
# It comes with Confluent's client for Python. It needs nothing but libc, and brings TLS and OAuth with it.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:?usage: Deploy/newer-librdkafka.sh FOLDER}
package=confluent-kafka==2.16.1

source Deploy/needs.sh
command -v python3 >/dev/null || install_missing python3
python3 -m pip --version >/dev/null 2>&1 || install_missing python3-pip

temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
for attempt in 1 2 3; do
  if python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$temp" "$package"; then
    break
  fi
  ((attempt < 3)) || { echo "$package can't be downloaded" >&2; exit 1; }
  sleep 5
done
python3 -m zipfile -e "$temp"/*.whl "$temp/package"
mkdir -p "$folder"
cp "$temp"/package/confluent_kafka.libs/librdkafka-*.so.1 "$folder/librdkafka.so.1"
