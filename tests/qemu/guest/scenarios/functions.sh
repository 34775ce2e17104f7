# A physical and a virtual function, one after the other behind the IOMMU.
card0_vf=${card0%.0}.1
bind "$card0" vfio-pci
bind "$card0_vf" vfio-pci
check functions 60 pci-guest functions "$card0" "$card0_vf"
