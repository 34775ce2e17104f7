# The card falls off the bus under traffic. It does not come back: the last scenario of a boot.
check vanished 90 pci-guest vanished "$card0"
