# shellcheck shell=bash disable=SC2034,SC2154,SC2164
# Headers that a distribution's -dev package leaves out, from the source package of the same version. For scripts
# that print a folder of them: dpdk-headers and ompi-headers. Source it after common.sh and set
#
#   software         its name in messages, module its module of pkg-config
#   package          its -dev package, source_package that one's source package
#   headers_text     what the headers are, in messages
#   cache_name       the folder in .cache/ that keeps them
#   include_dirs     where installed headers are, beside the folders that pkg-config names
#   left_out         the headers, as an #include names them
#   proof            shipped headers beside them: they must be equal to the byte, or in their code alone if the
#                    mirror has only the source of another version of the same stable branch
#   places           patterns of find for the folders of the source that the headers are in
#   install_remedy, build_remedy, source_site    how to install it, to build it with these headers, to get its source
#   source_variable  the variable of the environment that names a source tree, or the tarball of one, instead of apt
#   tree_version     a function: prints the version that the file VERSION of a source tree, its argument, says
#
# and then call print_source_headers "$@". It contacts no server if nothing is left out, or the headers are in
# .cache already; the headers are proved against the shipped ones, whatever their source is.

# print_source_headers OPTION...: --help, --refetch, or none; the folder, or an empty line, on stdout.
print_source_headers() {
  local arg refetch=no
  for arg in "$@"; do
    case $arg in
      --help | -h) help_from_header; exit 0 ;;
      --refetch) refetch=yes ;;
      *) usage_error "no option '$arg'" ;;
    esac
  done
  exec 3>&1 1>&2 # stdout is for the folder alone
  pkg-config --exists "$module" || die "$software is not installed" "$install_remedy"
  version=$(pkg-config --modversion "$module")
  find_include_dirs
  if ! lacks_headers; then
    echo >&3
    return 0
  fi
  check_package
  folder=$root/.cache/$cache_name/$package_version
  if [ ! -f "$folder/complete" ] || [ $refetch = yes ]; then
    make_folder
  fi
  echo "$folder" >&3
}

# find_include_dirs: sets include_dirs, where the installed headers are.
find_include_dirs() {
  local -a flags
  read -r -a flags < <(pkg-config --cflags-only-I "$module") || true
  include_dirs=("${include_dirs[@]}" "${flags[@]#-I}")
}

# shipped HEADER: where it is installed.
shipped() {
  local dir
  for dir in "${include_dirs[@]}"; do
    [ ! -f "$dir/$1" ] || { echo "$dir/$1"; return 0; }
  done
  return 1
}

# lacks_headers: true if one of left_out is not installed.
lacks_headers() {
  local header
  for header in "${left_out[@]}"; do
    shipped "$header" >/dev/null || return 0
  done
  return 1
}

# check_package: sets package_version; the installed software must be the package's.
check_package() {
  package_version=$(dpkg-query -W -f '${source:Version}' "$package" 2>/dev/null || true)
  case ${package_version#*:} in
    "$version"*) ;;
    *) die "$software $version was not installed by $package (${package_version:-not installed}) and lacks $headers_text" \
      "$build_remedy, or use the distribution's $package" ;;
  esac
}

# make_folder: fetches, proves and keeps the headers.
make_folder() {
  mkdir -p "$root/.cache/$cache_name"
  work=$(mktemp -d "$root/.cache/$cache_name/fetch.XXXXXX")
  trap 'rm -rf -- "$work"' EXIT
  mkdir -p "$work"/{lists/partial,cache/archives/partial,source,tree,debian,out}
  branch=$(cut -d. -f1,2 <<<"$version")
  found=''
  if [ -n "${!source_variable:-}" ]; then
    take_own_source "${!source_variable}"
  else
    take_package_source
  fi
  take_headers
  prove_headers
  echo "from the source of $source_package $found" >"$work/out/complete"
  chmod -R a+rX "$work/out"
  rm -rf -- "$folder"
  mv -- "$work/out" "$folder"
  say fetched "${#left_out[@]} headers $(cat "$folder/complete")"
}

# take_own_source SOURCE: the user's tree or tarball.
take_own_source() {
  local file
  [ -e "$1" ] || die "$source_variable: no '$1'" "name a source tree of $software or its tarball"
  say fetch "$software $package_version $headers_text, from $1"
  unpack "$1"
  file=$(version_file)
  found=${file:+$(tree_version "$file")}
  case $found in
    "$branch".*) ;;
    *) die "$1 is $software ${found:-of no version}, the installed one is $version" "get the source of $software $version" ;;
  esac
}

# take_package_source: the distribution's.
take_package_source() {
  say fetch "$software $package_version $headers_text, from the distribution's source package"
  fetch_by_apt
  if [ -z "$found" ]; then
    grep -E '^(E|W):' "$work/log" | sort -u | tail -n 10 >&2
    die "apt could not fetch the source of $source_package $package_version" \
      "check the network and that the mirror carries sources, or get the source of $software $version elsewhere and set $source_variable to its folder or tarball"
  fi
  [ "$found" = "$package_version" ] ||
    warn "the mirror has no source of $source_package $package_version; taking $found of the same branch, after a proof that it fits"
  unpack "$(find "$work/source" -name "${source_package}_*.orig.tar.*" ! -name '*.asc')"
  tar -C "$work/debian" -xf "$(find "$work/source" -name "${source_package}_*.debian.tar.*")"
}

# fetch_by_apt: the source package into $work/source; sets found to its version.
fetch_by_apt() {
  local codename candidate candidates
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  "$py" "$root/scripts/lib/apt_sources.py" --types deb-src --codename "$codename" >"$work/src.sources"
  local -a private=(-o Acquire::Retries=3 -o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=true
    -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache"
    -o Dir::Etc::sourcelist="$work/src.sources" -o Dir::Etc::sourceparts=/dev/null)
  cd "$work/source"
  apt-get -q "${private[@]}" update >"$work/log" 2>&1 || true # one broken source of many is no reason to stop
  # The installed version first. A mirror may have dropped its source, or have it not yet: then
  # the others of the same stable branch, which must prove below that they fit.
  mapfile -t candidates < <(
    echo "$package_version"
    apt-cache "${private[@]}" showsrc "$source_package" 2>>"$work/log" | sed -n 's/^Version: *//p' |
      grep -E "^([0-9]+:)?${branch//./\\.}[.~+-]" | grep -v -x -F "$package_version" | sort -u -V -r
  )
  for candidate in "${candidates[@]}"; do
    if apt-get -q "${private[@]}" source --download-only "$source_package=$candidate" >>"$work/log" 2>&1; then
      found=$candidate
      break
    fi
    rm -rf -- "${work:?}"/source/*
  done
  cd "$root"
}

# unpack SOURCE: the headers wanted, and VERSION, from a source tree or a tarball of one, into $work/tree.
unpack() {
  local -a wanted=("${left_out[@]}" "${proof[@]}" VERSION)
  local name
  if [ -d "$1" ]; then
    for name in "${wanted[@]}"; do
      (cd "$1" && find . -path "*/$name" -type f -exec cp --parents -t "$work/tree" {} +)
    done
  else
    tar -C "$work/tree" -xf "$1" --wildcards "${wanted[@]/#/*/}" >"$work/log" 2>&1 || [ -n "$(ls "$work/tree")" ] ||
      die "$1 is no tarball of $software's source" "see $source_site for $software $version"
  fi
}

# version_file: the file VERSION at the top of the unpacked tree, if it has one.
version_file() { find "$work/tree" -maxdepth 2 -name VERSION -printf '%d %p\n' | sort -n | sed -n '1s/^[0-9]* //p'; }

# take_headers: those left out, from the unpacked tree, into $work/out.
take_headers() {
  local header file place
  local -a anywhere
  for header in "${left_out[@]}"; do
    anywhere=()
    for place in "${places[@]}"; do
      anywhere+=(${anywhere:+-o} -path "$place/$header")
    done
    file=$(find "$work/tree" "${anywhere[@]}")
    [ -f "$file" ] || die "$header is not (or more than once) in the source of $source_package $found" \
      "this $software is unknown to scripts/$self; report it with the version"
    ! grep -r -q "^+++ .*/$header" "$work/debian" ||
      die "the distribution patches $header" "report it: scripts/$self does not apply patches"
    install -D -m 644 "$file" "$work/out/$header"
  done
}

# prove_headers: the shipped headers beside them are those of the source.
prove_headers() {
  local header installed file proved=0
  for header in "${proof[@]}"; do
    installed=$(shipped "$header") || continue
    file=$(find "$work/tree" -path "*/$header")
    same_code "$file" "$installed" ||
      die "$software $found does not fit the installed $software: $header differs" \
        "get the source of $software $version itself and set $source_variable to it"
    proved=$((proved + 1))
  done
  [ $proved -gt 0 ] || die "no header of $package proves that the source of $source_package $found fits" \
    "this $software is unknown to scripts/$self; report it with the version"
}

# bare FILE: its code without comments and #include lines.
bare() { gcc -fpreprocessed -dD -E -P -w -x c "$1" | sed '/^#include/d'; }

# same_code FILE FILE: equal to the byte; bare, if they are from two versions of the branch.
same_code() {
  cmp -s "$1" "$2" && return 0
  [ "$found" != "$package_version" ] && bare "$1" >"$work/a" && bare "$2" >"$work/b" && cmp -s "$work/a" "$work/b"
}
