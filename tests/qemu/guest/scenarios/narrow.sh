# Pointers as bus addresses, with an IOMMU that has too few bits.
refused iommu-too-narrow 'cannot address' pci-guest messages "$card0,iova=virtual"
