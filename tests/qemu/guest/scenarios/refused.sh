# Wrong bindings are reported with their remedies.
refused no-such-card 'no PCI device' pci-guest messages 0000:00:1f.7
refused foreign-device 'bound to' pci-guest messages 0000:00:1f.2
bind "$card0" uio_pci_generic
refused uio-behind-iommu 'check that the IOMMU maps' pci-guest messages "$card0"
echo "RIO-FACT faults=$(grep -c 'refused to start it: host read' /tmp/refused.out)"
bind "$card0" vfio-pci
