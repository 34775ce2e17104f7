# The card is taken from vfio-pci under traffic, and given back: it works again.
check unbind 90 pci-guest unbound "$card0"
bind "$card0" vfio-pci
check rebound 60 pci-guest messages "$card0"

# Unbinding under rio-testpmd, which ends with exit code 3, and the cause.
# shellcheck disable=SC2086
timeout -s KILL 120 rio-testpmd $eal_options $eal_memory --iova-mode="$iova" -a "$eal_card0,destid=0x100" \
  -- --stats-period 1 --peers 0x100 --verify --mode io --seconds 100 >/tmp/hit.out 2>&1 &
testpmd_pid=$!
until_line $testpmd_pid 'received [1-9]' /tmp/hit.out
timeout -s KILL 60 sh -c "echo $card0 >/sys/bus/pci/drivers/vfio-pci/unbind"
count testpmd-unbind 0 $?
testpmd_code=0
wait $testpmd_pid || testpmd_code=$?
grep -v received /tmp/hit.out
count testpmd-unbound-code 3 "$testpmd_code"
bind "$card0" vfio-pci
