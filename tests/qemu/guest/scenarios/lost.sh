# The card loses its state under traffic.
check lost-state 90 pci-guest lost-state "$card0"
