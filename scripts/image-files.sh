#!/usr/bin/env bash
# image-files.sh PROGRAM ROOT BASE_PACKAGES: what an image of PROGRAM needs beside its base image.
#
# Puts into ROOT the program, stripped, the shared libraries that it loads, but those of the packages
# listed in the file BASE_PACKAGES, which the base image has, and the certificates that clients trust.
# The packages are recorded in ROOT/var/lib/dpkg/status.d, where scanners of images look.
set -euo pipefail
program=$1 root=$2 base_packages=$3

fail() {
  echo "image-files.sh: $program: $*" >&2
  exit 1
}

libraries=$(ldd "$program")
if missing=$(grep 'not found' <<<"$libraries"); then fail "$missing"; fi
mapfile -t libraries < <(awk '$2 == "=>" && $3 ~ /^\// { print $3 }' <<<"$libraries")

# dpkg knows a file by its path before or behind the merge of /lib into /usr/lib.
declare -A owner
mapfile -t real < <(realpath "${libraries[@]}")
while read -r package path; do
  owner[$(realpath "$path")]=$package
done < <(dpkg-query --search "${real[@]}" "${real[@]#/usr}" 2>/dev/null |
  sed -nE 's/^([a-z0-9][^:, ]*)(:[a-z0-9]+)?: (.*)$/\1 \3/p')

install -D --strip --mode=755 "$program" "$root/usr/bin/$(basename "$program")"
install -D --mode=644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
status=$root/var/lib/dpkg/status.d
mkdir -p "$status"
for index in "${!libraries[@]}"; do
  file=${real[index]}
  package=${owner[$file]:-}
  [[ -n $package ]] || fail "no package owns $file"
  if grep -qx "$package" "$base_packages"; then continue; fi
  install -D --mode=644 "$file" "$root/usr/lib/$(basename "${libraries[index]}")"
  dpkg-query --status "$package" >"$status/$package"
done
