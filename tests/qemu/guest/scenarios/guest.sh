# The driver without EAL, part by part, on one card that hears itself.

parts='messages large dedicated dma doorbells'
for part in $parts; do
  check "$part" 60 pci-guest "$part" "$card0"
done
# While a child of the killed process lives, another one opens the card.
check killed 60 pci-guest killed "$card0"
# The program of docs/embedding.md, with the card's name instead of an emulated one's.
check example 60 riopmd_ping "$card0"
