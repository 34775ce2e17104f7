# rio-testpmd on one card that hears itself, by --peers.
testpmd_loop() { # MODE OPTIONS...
  # shellcheck disable=SC2086
  check "testpmd-loop-$1" 60 rio-testpmd $eal_options $eal_memory --iova-mode="$iova" \
    -a "$eal_card0,destid=0x40" -- --stats-period 0 --peers 0x40 --verify --mode "$@"
}
testpmd_loop io --size 128 --count 300
testpmd_loop dedicated --size 5000 --offset 8 --count 10
