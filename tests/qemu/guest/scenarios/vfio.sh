# Through the guest's IOMMU, whose tables rio-cardsim walks.
all_cards="$card0"
[ ! -e "/sys/bus/pci/devices/$card1" ] || all_cards="$card0 $card1"
# shellcheck disable=SC2086
check find-unbound 30 pci-guest find $all_cards
bind "$card0" vfio-pci
[ ! -e "/sys/bus/pci/devices/$card1" ] || bind "$card1" vfio-pci
# shellcheck disable=SC2086
check find-bound 30 pci-guest find $all_cards
iova=va
eal_memory=--in-memory
