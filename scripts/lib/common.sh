# shellcheck shell=bash disable=SC2034
# Shared by the scripts of this folder. Source it first: it turns on strict mode and sets
#   root   the top of the repository
#   build  the build folder (build/, or $RIO_BUILD)
#   jobs   how many things to run at once (the cores, or $RIO_JOBS)
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
build=${RIO_BUILD:-$root/build}
jobs=${RIO_JOBS:-$(nproc)}
self=$(basename -- "$0")

# The distribution's tools first: another python3 or meson may lack what the packages bring.
# Fake programs of tests come before these.
export PATH="${RIO_TEST_TOOLS:+$RIO_TEST_TOOLS:}/usr/sbin:/usr/bin:/sbin:/bin:$PATH"
py=/usr/bin/python3

# say LABEL TEXT...: one aligned line of progress on stdout.
say() {
  local label=$1
  shift
  printf '%-10s %s\n' "$label" "$*"
}

# warn TEXT...: a line on stderr; the script goes on.
warn() { printf '%s: warning: %s\n' "$self" "$*" >&2; }

# die TEXT [REMEDY]: prints the error and the remedy, and ends with exit code 1. A calling script that goes on
# finds both in the file RIO_WHY, and prints them itself.
die() {
  if [ -n "${RIO_WHY:-}" ]; then
    printf '%s\t%s\n' "$1" "${2:-see the lines above}" >"$RIO_WHY"
    exit 1
  fi
  printf '%s: error: %s\n' "$self" "$1" >&2
  [ $# -lt 2 ] || printf '%s: remedy: %s\n' "$self" "$2" >&2
  exit 1
}

[[ $jobs =~ ^[1-9][0-9]{0,3}$ ]] ||
  die "RIO_JOBS is '$jobs'" "set it to the number of jobs to run at once, from 1 to 9999, or unset it"

# usage_error TEXT: a wrong command line; exit code 2.
usage_error() {
  printf '%s: error: %s\n' "$self" "$1" >&2
  printf "%s: remedy: '%s --help' lists the options, with examples\n" "$self" "$self" >&2
  exit 2
}

# help_from_header: prints the comment at the head of the running script, which is its --help.
help_from_header() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"; }

is_root() { [ "$(id -u)" -eq 0 ]; }

# can_root: true if as_root would work without asking the user anything.
can_root() { is_root || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; }

# as_root COMMAND...: runs it as root, by sudo where needed.
as_root() {
  if is_root; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo -- "$@"
  else
    die "'$1' needs root, and there is no sudo" "run $self as root, or install sudo"
  fi
}

# release: debian-12, debian-13, ubuntu-24.04 …, or 'unknown'.
release() {
  # shellcheck disable=SC1091
  (. /etc/os-release 2>/dev/null && echo "${ID:-unknown}-${VERSION_ID:-}") || echo unknown
}

# missing_packages NAME...: those that are not installed, one a line.
missing_packages() {
  local installed
  # The second letter of the state is the package's state. dpkg-query fails if a package is unknown.
  installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^.i. *//p' || true)
  printf '%s\n' "$@" | grep -v -x -F -e "$installed" || true
}

# install_packages NAME...: installs missing packages; contacts no server if none is missing. If some cannot be
# installed, the others still are: returns 1, with the failed names in not_installed and the reason in
# install_why.
not_installed=() install_why=''
install_packages() {
  local missing name log tried=/dev/null
  local -a available=()
  not_installed=() install_why=''
  [ -z "${RIO_MISSING:-}" ] || [ ! -f "$RIO_MISSING.packages" ] || tried=$RIO_MISSING.packages
  mapfile -t missing < <(missing_packages "$@" | grep -v -x -F -f "$tried")
  [ ${#missing[@]} -gt 0 ] || return 0
  say install "${missing[*]}"
  if ! is_root; then
    command -v sudo >/dev/null || install_why='this is not root, and there is no sudo'
    [ -n "$install_why" ] || sudo true || install_why='this is not root, and sudo refused'
  fi
  if [ -n "$install_why" ]; then
    keep_not_installed "${missing[@]}"
    return 1
  fi
  log=$(mktemp)
  apt_as_root update >"$log" 2>&1 ||
    warn "apt-get update complained: $(grep -m1 -E '^(E|W|Err):?' "$log" || tail -n 1 "$log")"
  if ! apt_as_root install "${missing[@]}" >"$log" 2>&1; then
    install_why=$(grep -m1 '^E:' "$log" || tail -n 1 "$log")
    grep '^E:' "$log" | tail -n 10 >&2 || tail -n 10 "$log" >&2
    for name in "${missing[@]}"; do
      ! apt-get -q --simulate install --no-install-recommends "$name" >/dev/null 2>&1 || available+=("$name")
    done
    # All together, unless exactly that has just failed; otherwise one by one.
    if [ ${#available[@]} -eq ${#missing[@]} ] || ! apt_as_root install "${available[@]}" >"$log" 2>&1; then
      for name in "${available[@]}"; do
        apt_as_root -o Acquire::Retries=0 -o Acquire::http::Timeout=10 install "$name" >"$log" 2>&1 || true
      done
    fi
  fi
  rm -f -- "$log"
  mapfile -t missing < <(missing_packages "${missing[@]}")
  [ ${#missing[@]} -gt 0 ] || return 0
  keep_not_installed "${missing[@]}"
  return 1
}

# keep_not_installed NAME...: remembers them, so that this run does not try them again.
keep_not_installed() {
  not_installed=("$@")
  [ -z "${RIO_MISSING:-}" ] || printf '%s\n' "$@" >>"$RIO_MISSING.packages"
}

# apt_as_root ARGUMENT...: apt-get without questions.
apt_as_root() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
    -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@"
}

# run_deps GROUP...: scripts/deps as a step of another script, which goes on if an optional package is missing.
run_deps() { "$root/scripts/deps" --quiet "$@" || [ $? -eq 3 ] || exit 1; }

# driver_headers: prints the folder for -Ddpdk_driver_headers, fetching it if need be.
driver_headers() { "$root/scripts/dpdk-headers"; }

# ompi_headers: prints the folder for -Dompi_headers, fetching it if need be; nothing if none is needed.
ompi_headers() { "$root/scripts/ompi-headers"; }

# configure FOLDER MESON_ARGUMENT...: meson setup, once; again only if the arguments change.
# CC and CXX of the environment choose the compilers of a new folder.
configure() {
  local dir=$1 log
  shift
  local stamp="$dir/.configured" want
  want=$(printf '%s\n' "$@" && optional_modules)
  if [ -f "$dir/build.ninja" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then
    return 0
  fi
  say configure "${dir#"$root"/}" "$@"
  mkdir -p "$dir"
  log="$dir/configure.log"
  local -a how=(meson setup)
  [ ! -f "$dir/build.ninja" ] || how=(meson setup --reconfigure)
  if ! "${how[@]}" "$dir" "$root" "$@" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$stamp"
    die "meson could not configure ${dir#"$root"/}" \
      "see the lines above and $log; ./scripts/deps installs what may be missing"
  fi
  echo "$want" >"$stamp"
}

# optional_modules: modules that meson uses if they are there. If one appears or vanishes, the build is
# configured again.
optional_modules() {
  local module
  for module in ompi-c benchmark simgrid; do
    ! pkg-config --exists "$module" || echo "# $module"
  done
}

# compile FOLDER [TARGET...]: ninja; silent but for compiler messages where output is no terminal.
compile() {
  local dir=$1 start=$SECONDS
  # ccache remembers what includes a precompiled header (tests/meson.build) only if told so.
  local -x CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}
  shift
  say compile "${dir#"$root"/}"
  # Where a meson.build changed, meson runs first, and says a lot.
  if ! ninja -C "$dir" build.ninja >"$dir/configure.log" 2>&1; then
    tail -n 20 "$dir/configure.log" >&2
    die "meson could not configure ${dir#"$root"/}" "see the lines above"
  fi
  # On a terminal ninja shows one moving line; elsewhere only what the compilers have to say.
  if [ -t 1 ]; then
    ninja -C "$dir" -j "$jobs" "$@"
  else
    ninja -C "$dir" -j "$jobs" --quiet "$@" | sed '/^ninja: \(no work to do\|Entering directory\)/d'
  fi ||
    die "the build in ${dir#"$root"/} failed" "see the compiler's first error above"
  [ $((SECONDS - start)) -lt 5 ] || say compile "${dir#"$root"/} done in $((SECONDS - start)) s"
}

# configure_tree FOLDER MESON_ARGUMENT...: configures, with the parts that this machine has.
configure_tree() {
  choose_parts "${@:2}"
  configure "$1" "${part_options[@]}" "${@:2}"
}

# build_tree FOLDER MESON_ARGUMENT...: configure and compile. build_suites are test suites to
# compile for, build_targets are ninja's targets; without either it is everything.
build_suites=() build_targets=()
build_tree() {
  local dir=$1
  configure_tree "$@"
  local -a targets=("${build_targets[@]}")
  if [ ${#build_suites[@]} -gt 0 ]; then
    ninja -C "$dir" build.ninja >/dev/null || true # the list is of the tree as it is now
    mapfile -t -O ${#targets[@]} targets < <("$py" "$root/scripts/lib/suite_targets.py" "$dir" "${build_suites[@]}")
  fi
  compile "$dir" "${targets[@]}"
}

# run_meson_tests FOLDER SECONDS MESON_ARGUMENT...: runs the tests of a build folder within the
# time, prints what failed and what was skipped and, last, the counts. Sets meson_tests_failed
# to 0 or 1. Tests wait and sleep a third of their time, so three run on two cores. meson_test_prefix is a command
# to start meson with. That none at all runs is a failure if --suite or a name is among the arguments.
meson_test_prefix=()
run_meson_tests() {
  local dir=$1 limit=$2 code=0 log
  shift 2
  log="$dir/meson-logs/testlog.json"
  rm -f "$log"
  MESON_TESTTHREADS=$(((jobs * 3 + 1) / 2)) timeout --signal=INT --kill-after=20 "$limit" \
    "${meson_test_prefix[@]}" meson test -C "$dir" --no-rebuild "$@" >"$dir/test-run.log" 2>&1 </dev/null || code=$?
  local -a selected=()
  local argument previous=''
  for argument in "$@"; do
    case $previous,$argument in
      --no-suite,* | --repeat,* | --timeout-multiplier,*) ;;
      *,--suite* | *,[!-]*) selected=(--selected) ;;
    esac
    previous=$argument
  done
  meson_tests_failed=0
  "$py" "$root/scripts/lib/test_summary.py" --exit-code "$code" --limit "$limit" \
    --run-log "$dir/test-run.log" ${RIO_MISSING:+--missing "$RIO_MISSING"} "${selected[@]}" "$log" ||
    meson_tests_failed=1
}

# shellcheck source=scripts/lib/parts.sh
. "$root/scripts/lib/parts.sh"
