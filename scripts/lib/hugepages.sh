# shellcheck shell=bash disable=SC2034
# Hugepages of 2 MiB for DPDK. Source after common.sh.

hugepage_folder=/sys/kernel/mm/hugepages/hugepages-2048kB
hugepages_why='' # why reserve_hugepages failed, with the remedy

free_hugepages() { cat "$hugepage_folder/free_hugepages" 2>/dev/null || echo 0; }

# reserve_hugepages COUNT: makes COUNT free hugepages available and mounts hugetlbfs, as far as
# that works without asking the user. Returns 1 and sets hugepages_why if there are fewer than
# a quarter of COUNT in the end.
reserve_hugepages() {
  local want=$1 free total
  free=$(free_hugepages)
  if [ "$free" -lt "$want" ] && can_root && [ -e "$hugepage_folder/nr_hugepages" ]; then
    total=$(cat "$hugepage_folder/nr_hugepages")
    as_root sh -c "echo $((total + want - free)) >$hugepage_folder/nr_hugepages" 2>/dev/null || true
    free=$(free_hugepages)
  fi
  if [ "$free" -lt $((want / 4)) ]; then
    hugepages_why="only $free hugepages are free; as root: echo $want >/proc/sys/vm/nr_hugepages"
    return 1
  fi
  if ! grep -q ' hugetlbfs ' /proc/mounts; then
    if ! can_root || ! as_root sh -c 'mkdir -p /dev/hugepages && mount -t hugetlbfs none /dev/hugepages' 2>/dev/null; then
      hugepages_why="hugetlbfs is not mounted; as root: mount -t hugetlbfs none /dev/hugepages"
      return 1
    fi
  fi
}
