# rio-testpmd in every mode, verifying, on two cards that are wired to each other and already bound:
# one program, since EAL takes long to start. $iova is EAL's mode, $eal_memory its other options.

run() { # MODE OPTION VALUE...
  echo "set mode $1"
  shift
  while [ $# -gt 0 ]; do
    echo "set $1 $2"
    shift 2
  done
  printf 'start\nwait\n'
}
{
  echo 'set verify on'
  run io size 64 window 8 count 200
  run txonly size 256 count 200
  run rxonly size 8
  run flowgen size 1000 flows 16 count 100
  run pingpong size 64 count 20
  run dedicated size 8K offset 24 count 8
  run doorbell offset 0 size 64 count 100
  for op in nread nwrite nwrite_r swrite; do
    run rdma size 4K op $op count 10
  done
} >/tmp/testpmd.commands

# shellcheck disable=SC2086
check "testpmd-$iova" 90 rio-testpmd $eal_options $eal_memory --iova-mode="$iova" \
  -a "$eal_card0,destid=0x100" -a "$eal_card1,destid=0x200" -- --stats-period 0 --cmdline-file /tmp/testpmd.commands |
  tee /tmp/testpmd.out
# Each mode must have verified something without errors.
right=$(grep -c '^verified  *[1-9][0-9,]* bytes in [1-9][0-9,]* messages, 0 errors$' /tmp/testpmd.out)
count "testpmd-$iova-modes" "$(grep -c '^start' /tmp/testpmd.commands)" "$right"
# The hot path reads no register.
count "testpmd-$iova-bar-reads" 0 "$(grep '^BAR' /tmp/testpmd.out | grep -v -c ' 0.0000 reads')"
