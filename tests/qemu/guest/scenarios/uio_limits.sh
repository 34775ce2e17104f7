# Requests that UIO cannot serve are refused, and others work.
check memory-uio 60 pci-guest memory-uio "$card0"
refused uio-interrupts 'no interrupts on this bus' pci-guest interrupts "$card0"
