"""vfio-pci: a physical and a virtual function of one card, in one group of the IOMMU, since functions of
a slot without ACS share one."""
import harness
from machine import Card


class VfioFunctions(harness.GuestCase):
    cards = [Card("doorbell", vfs=1, pcie=7)]
    iommu = 48
    scenarios = ["functions"]

    def test_messages_between_them(self):
        self.passed("functions")

    def test_no_fault(self):
        for key in ("iommu_faults", "refused_accesses"):
            self.assertEqual(self.count(key), 0, key)


if __name__ == "__main__":
    harness.main()
