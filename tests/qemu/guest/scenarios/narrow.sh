# Pointers as bus addresses, and an IOMMU that has not as many bits.
refused iommu-too-narrow 'cannot address' pci-guest messages "$card0,iova=virtual"
