# No IOMMU: physical addresses.
all_cards="$card0"
[ ! -e "/sys/bus/pci/devices/$card1" ] || all_cards="$card0 $card1"
# shellcheck disable=SC2086
check find-unbound 30 pci-guest find $all_cards
bind "$card0" uio_pci_generic
[ ! -e "/sys/bus/pci/devices/$card1" ] || bind "$card1" uio_pci_generic
# shellcheck disable=SC2086
check find-bound 30 pci-guest find $all_cards
iova=pa
# Only then does EAL look for memory longer than a hugepage that is contiguous for the card, too.
eal_memory='--legacy-mem -m 64 --huge-unlink --no-shconf'
