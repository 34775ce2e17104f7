# The card loses its state under rio-testpmd's traffic: exit code 3, with the cause. Restarted, it
# works.
testpmd_hit lose-state
count testpmd-lost-code 3 "$testpmd_code"
count testpmd-lost-told 1 "$(grep -c 'error:.*nothing moved' /tmp/hit.out)"
# shellcheck disable=SC2086
check testpmd-lost-again 60 rio-testpmd $eal_options $eal_memory --iova-mode="$iova" \
  -a "$eal_card0,destid=0x100" -- --stats-period 0 --peers 0x100 --verify --mode txonly --size 1000 --count 50
