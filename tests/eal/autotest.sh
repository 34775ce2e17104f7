#!/bin/sh
# Stock dpdk-test with the plug-in: rawdev_autotest, which runs the selftest of each raw device.
#   autotest.sh EAL_ARGUMENT...
# The plug-in's folder is in LD_LIBRARY_PATH: EAL refuses -d with a path below a folder that
# everybody may write.
command -v dpdk-test >/dev/null || { echo "skipped: dpdk-test is not installed: apt-get install dpdk-dev"; exit 77; }
case " $* " in
  *" --no-huge "*) ;;
  *) [ "$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages 2>/dev/null || echo 0)" -ge 64 ] ||
       { echo "skipped: fewer than 64 free hugepages: echo 256 >/proc/sys/vm/nr_hugepages"; exit 77; } ;;
esac
trap 'rm -rf "/var/run/dpdk/rio-autotest-$$" "${XDG_RUNTIME_DIR:-/var/run}/dpdk/rio-autotest-$$"' EXIT
log=$(echo rawdev_autotest | dpdk-test --no-pci --no-telemetry --file-prefix "rio-autotest-$$" \
  --lcores '0@(0-1)' "$@" -d librte_raw_rio.so 2>&1)
echo "$log"
echo "$log" | grep -q '(raw_rio0) selftest: Passed' || exit 1
echo "$log" | grep -q 'Test OK' || exit 1
! echo "$log" | grep -q 'selftest: Failed'
