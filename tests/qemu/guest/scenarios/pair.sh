# The driver without EAL on two cards that are wired to each other.
check pair 60 pci-guest pair "$card0" "$card1"
check example-pair 60 riopmd_pingpong "$card0" "$card1"
