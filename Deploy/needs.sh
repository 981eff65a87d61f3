# What the other scripts need from the system. To be sourced.

# Installs those of the named Debian packages that are missing; says what to do where it can't.
install_missing() {
  local missing=() package sudo=
  # Elsewhere than on Debian the build itself says what it can't find.
  command -v dpkg-query >/dev/null || return 0
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  ((${#missing[@]} > 0)) || return 0
  if ((EUID != 0)); then
    sudo=$(command -v sudo) || { echo "Missing: ${missing[*]}. Only root can install them." >&2; exit 1; }
  fi
  echo "Installing ${missing[*]} …"
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

need_swift() {
  command -v swift >/dev/null || { echo "There is no Swift toolchain (6.2 or newer): see swift.org/install" >&2; exit 1; }
}
