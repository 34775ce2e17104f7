"""vfio-pci behind an IOMMU, addresses as the driver or EAL (VA) chooses them. One card with
interrupts that hears itself."""
import harness
from machine import Card


class Vfio(harness.GuestCase):
    cards = [Card("doorbell")]
    iommu = 48
    scenarios = ["vfio", "guest", "iommu", "testpmd_loop"]

    def test_without_eal(self):
        self.passed("messages", "large", "dedicated", "dma", "doorbells", "example")

    def test_user_memory(self):
        self.passed("memory", "memory-virtual")

    def test_unmapped_addresses_are_faults(self):
        """Each is counted by the IOMMU's walker, and those that are not asked for are none."""
        self.passed("unmapped")
        self.assertEqual(self.count("iommu_faults"), self.boot.facts["faults"])
        self.assertEqual(self.count("refused_accesses"), self.boot.facts["faults"])

    def test_interrupts(self):
        """As many were raised as the guest was woken by."""
        self.passed("interrupts")
        self.assertEqual(self.count("interrupts"), self.boot.facts["interrupts"])

    def test_testpmd_on_a_loop(self):
        self.passed("testpmd-loop-io", "testpmd-loop-dedicated")


if __name__ == "__main__":
    harness.main()
