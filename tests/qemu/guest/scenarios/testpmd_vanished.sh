# The card falls off the bus under rio-testpmd's traffic: exit code 3, and it says why. The last
# scenario of a boot.
# shellcheck disable=SC2086
timeout -s KILL 120 rio-testpmd $eal_options $eal_memory --iova-mode="$iova" -a "$card0,destid=0x100" \
  -- --stats-period 1 --peers 0x100 --verify --mode io --seconds 100 >/tmp/vanished.out 2>&1 &
program=$!
until_line $program 'received [1-9]' /tmp/vanished.out
echo "RIO-HOST vanish"
code=0
wait $program || code=$?
grep -v 'received' /tmp/vanished.out
count testpmd-vanished-code 3 $code
count testpmd-vanished-told 1 "$(grep -c 'error:.*gone' /tmp/vanished.out)"
