# Through the guest's IOMMU, whose tables rio-cardsim walks.
bind "$card0" vfio-pci
[ ! -e "/sys/bus/pci/devices/$card1" ] || bind "$card1" vfio-pci
iova=va
eal_memory=--in-memory
