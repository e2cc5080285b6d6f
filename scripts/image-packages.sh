#!/usr/bin/env bash
# image-packages.sh BASE_PACKAGES: in an image, notes in that file what it has, and installs what the
# build needs. Beside it lies packages.sh.
set -euo pipefail
# shellcheck source=scripts/dev.d/packages.sh
source "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

dpkg-query --show --showformat '${Package}\n' >"$1"
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends "${build_packages[@]}"
