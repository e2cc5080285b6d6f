# shellcheck shell=bash disable=SC2034
# The Debian packages that each verb needs. Only missing ones are installed.

build_packages=(
  ca-certificates ccache cmake g++ git ninja-build pkg-config python3
  libbenchmark-dev libboost-dev libboost-system-dev libcli11-dev libcpprest-dev
  libcurl4-openssl-dev libfmt-dev libgmock-dev libgtest-dev libisal-dev libpugixml-dev libspdlog-dev libssl-dev
  libyaml-cpp-dev nlohmann-json3-dev prometheus-cpp-dev zlib1g-dev
)
clang_packages=(clang-19 libclang-rt-19-dev)
quick_packages=(clang-format-19 mypy python3-numpy python3-pytest shellcheck yamllint)
check_packages=("${quick_packages[@]}" "${clang_packages[@]}" clang-tidy-19)
python_packages=(mypy python3-fsspec python3-numpy python3-pytest python3-pytest-xdist python3-torch python3-torchvision)
test_packages=("${python_packages[@]}" iproute2 iptables nginx-light openssl prometheus python3-boto3 python3-jsonpatch python3-matplotlib python3-yaml)
demo_packages=(nginx-light python3-boto3 python3-matplotlib python3-numpy python3-torch python3-torchvision)
cluster_packages=(
  buildah conntrack containerd containernetworking-plugins curl debootstrap gcc gettext-base iproute2 iptables libc6-dev
  openssl procps python3 runc util-linux
)
ceph_packages=(ceph-mon ceph-osd radosgw) # a second server of S3
wheel_packages=(binutils python3-venv)
bench_packages=(curl memcached python3-venv "${demo_packages[@]}")

as_root() {
  if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

apt_quietly() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=600 "$@" >/dev/null
}

# need PACKAGE...: says what it installs, in one line; nothing when all are there.
need() {
  local package missing=()
  command -v dpkg-query >/dev/null || return 0 # not Debian: CMake names what it cannot find
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
      missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  say "installing by apt: ${missing[*]}"
  if [[ -z ${apt_is_fresh:-} ]]; then
    apt_quietly update
    apt_is_fresh=1
  fi
  apt_quietly install -y --no-install-recommends "${missing[@]}"
}
