# Features that need an IOMMU and MSI-X.
check memory 60 pci-guest memory "$card0"
check memory-virtual 60 pci-guest memory "$card0,iova=virtual"
check unmapped 60 pci-guest unmapped "$card0"
check interrupts 90 pci-guest interrupts "$card0"
# shellcheck disable=SC2086
check interrupts-eal 90 pci-sleeper "$card0" -d librte_raw_rio.so $eal_options $eal_memory --iova-mode="$iova" -a "$eal_card0"
