# What is wrong with a binding is told, and with it the remedy.
refused iommu-too-narrow 'cannot address' pci-guest messages $card0,iova=virtual
refused no-such-card 'no PCI device' pci-guest messages 0000:00:1f.7
refused foreign-device 'bound to' pci-guest messages 0000:00:1f.2
bind $card0 uio_pci_generic
refused uio-behind-iommu 'IOMMU' pci-guest messages $card0
bind $card0 vfio-pci
