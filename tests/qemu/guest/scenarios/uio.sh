# No IOMMU: physical addresses.
bind "$card0" uio_pci_generic
[ ! -e "/sys/bus/pci/devices/$card1" ] || bind "$card1" uio_pci_generic
iova=pa
# Only so does EAL look for pieces longer than a hugepage that are in one piece for the card, too.
eal_memory='--legacy-mem -m 64 --huge-unlink --no-shconf'
