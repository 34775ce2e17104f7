# The card falls off the bus under rio-testpmd's traffic: exit code 3, with the cause. The last
# scenario of a boot.
testpmd_hit vanish
count testpmd-vanished-code 3 "$testpmd_code"
count testpmd-vanished-told 1 "$(grep -c 'error:.*the card is gone' /tmp/hit.out)"
