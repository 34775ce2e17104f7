#!/bin/sh
# Stock dpdk-test with a plug-in.
#   autotest.sh TEST PLUGIN TEXT EAL_ARGUMENT...
# TEXT must be in the test's output: it shows that our device was found. The plug-in's folder is in
# LD_LIBRARY_PATH, since EAL refuses -d with a path below a world-writable folder.
test=$1 plugin=$2 text=$3
shift 3
command -v dpdk-test >/dev/null || { echo "skipped: dpdk-test is not installed: apt-get install dpdk-dev"; exit 77; }
case " $* " in
  *" --no-huge "*) ;;
  *) [ "$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages 2>/dev/null || echo 0)" -ge 64 ] ||
       { echo "skipped: fewer than 64 free hugepages: echo 256 >/proc/sys/vm/nr_hugepages"; exit 77; } ;;
esac
trap 'rm -rf "/var/run/dpdk/rio-autotest-$$" "${XDG_RUNTIME_DIR:-/var/run}/dpdk/rio-autotest-$$"' EXIT
log=$(echo "$test" | dpdk-test --no-pci --no-telemetry --file-prefix "rio-autotest-$$" \
  --lcores '0@(0-1)' "$@" -d "$plugin" 2>&1)
log=$(echo "$log" | tr '\r' '\n' | grep -v '^Ops submitted')
echo "$log"
echo "$log" | grep -qF "$text" || exit 1
echo "$log" | grep -q 'Test OK' || exit 1
! echo "$log" | grep -qE 'selftest: Failed|Failed +: [1-9]'
