# shellcheck shell=bash disable=SC2034,SC2154
# Parts that a machine may lack without stopping the rest. Sourced by common.sh.
#
# A missing part is reported when it is noticed, and again at the end by the script that the user started.
# Scripts started by that one add to the list in $RIO_MISSING, a line for each part: its name, the report and
# the remedy, separated by tabs.

missing_owner=no

# collect_missing: begins the list, unless the calling script has begun one.
collect_missing() {
  [ -z "${RIO_MISSING:-}" ] || return 0
  mkdir -p "$build"
  export RIO_MISSING=$build/.missing
  : >"$RIO_MISSING"
  rm -f -- "$RIO_MISSING.packages"
  missing_owner=yes
}

# why_missing PART: prints the report and the remedy, tab-separated; fails if PART is not in the list.
why_missing() { [ -n "${RIO_MISSING:-}" ] && grep -s -m 1 "^$1"$'\t' "$RIO_MISSING" | cut -f 2-; }

# is_missing PART: true if this run has found it missing.
is_missing() { why_missing "$1" >/dev/null; }

# note_missing PART TEXT REMEDY: reports it, once in a run, and keeps it for say_missing.
note_missing() {
  ! is_missing "$1" || return 0
  [ -z "${RIO_MISSING:-}" ] || printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$RIO_MISSING"
  warn "$2"
  printf '%s: remedy: %s\n' "$self" "$3" >&2
}

# say_missing: prints the list again, at the end of the script that began it.
say_missing() {
  [ "$missing_owner" = yes ] || return 0
  local part text remedy
  while IFS=$'\t' read -r part text remedy; do
    say missing "$text"
    say '' "remedy: $remedy"
  done <"$RIO_MISSING"
}

# is_given NAME OPTION...: true if one of meson's OPTIONs sets NAME.
is_given() {
  local name=$1 option
  shift
  for option in "$@"; do
    case $option in -D"$name"=*) return 0 ;; esac
  done
  return 1
}

# choose_parts OPTION...: sets part_options to meson's options for the parts of this machine. An OPTION of the
# user's that names a part takes precedence.
part_options=()
choose_parts() {
  part_options=()
  choose_dpdk "$@"
  choose_by_packages ofi enabled disabled libfabric libfabric-dev \
    "built without the libfabric provider, so without MPI" "$@"
  choose_ompi "$@"
  choose_by_packages tests true false gtest libgtest-dev "built without tests" "$@"
}

choose_dpdk() {
  local headers
  case " $* " in *" -Ddpdk=disabled "*) return 0 ;; esac
  if try_headers dpdk dpdk_headers "built without DPDK, so without plug-ins and rio-testpmd"; then
    part_options+=("-Ddpdk_driver_headers=$headers")
    is_given dpdk "$@" || part_options+=(-Ddpdk=enabled)
    return 0
  fi
  ! is_given dpdk "$@" || die "-Ddpdk=enabled was asked for, and there is no DPDK to build with" "see the lines above"
  part_options+=(-Ddpdk=disabled)
}

# choose_ompi OPTION...: the components for Open MPI, where Open MPI and libfabric are.
choose_ompi() {
  local headers
  case " $* ${part_options[*]} " in *" -Dompi=disabled "* | *" -Dofi=disabled "*) return 0 ;; esac
  pkg-config --exists ompi-c || return 0
  if try_headers ompi ompi_headers "built without mca_mtl_rio.so and mca_coll_rio.so, so Open MPI's messages go by libfabric, and its barriers do not run on the card"; then
    part_options+=("-Dompi_headers=$headers")
    is_given ompi "$@" || part_options+=(-Dompi=auto)
    return 0
  fi
  case " $* " in
    *" -Dompi=enabled "*) die "-Dompi=enabled was asked for, and the headers of Open MPI are missing" "see the lines above" ;;
  esac
  part_options+=(-Dompi=disabled)
}

# try_headers PART FUNCTION TEXT: sets headers to the folder that the function prints. If it fails, PART is missing:
# TEXT, the reason and the remedy are reported.
try_headers() {
  local part=$1 why reason remedy
  ! is_missing "$part" || return 1
  why=$(mktemp)
  if headers=$(RIO_WHY=$why "$2"); then
    rm -f -- "$why"
    return 0
  fi
  IFS=$'\t' read -r reason remedy <"$why" || reason="scripts/$part-headers failed" remedy='see the lines above'
  rm -f -- "$why"
  note_missing "$part" "$3: $reason" "$remedy"
  return 1
}

# dpdk_headers: driver_headers, on a machine that has the other needs of rio-testpmd.
dpdk_headers() {
  pkg-config --exists libedit || die "libedit is not installed" "apt-get install libedit-dev"
  driver_headers
}

# choose_by_packages OPTION YES NO MODULES PACKAGES TEXT OPTION_OF_USER...: YES if pkg-config finds all MODULES.
choose_by_packages() {
  local name=$1 yes=$2 no=$3 modules packages=$5 text=$6
  read -r -a modules <<<"$4"
  shift 6
  ! is_given "$name" "$@" || return 0
  if pkg-config --exists "${modules[@]}"; then
    part_options+=("-D$name=$yes")
  else
    note_missing "$name" "$text: $packages not installed" "apt-get install $packages"
    part_options+=("-D$name=$no")
  fi
}

# is_built_with PART FOLDER: true if the build folder is configured with dpdk, ofi or tests.
is_built_with() { ! grep -q -s -x -e "-D$1=disabled" -e "-D$1=false" "$2/.configured"; }
