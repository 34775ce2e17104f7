"""vfio-pci behind an IOMMU of 39 bits, virtual and physical addresses. Two cards, wired to each
other."""
import harness
from machine import Card


class VfioPair(harness.GuestCase):
    # Segment by segment, and the card's writes arrive late and in pieces, as on a real link.
    cards = [Card("doorbell", devfn="04.0", pcie=5), Card("doorbell", devfn="05.0", pcie=6)]
    iommu = 39
    scenarios = ["vfio", "narrow", "testpmd", "pair", "testpmd_pa"]

    def test_cards_are_found(self):
        self.passed("find-unbound", "find-bound")

    def test_testpmd_in_every_mode(self):
        self.passed("testpmd-va", "testpmd-va-modes", "testpmd-va-bar-reads")

    def test_testpmd_with_physical_addresses(self):
        self.passed("testpmd-pa", "testpmd-pa-modes", "testpmd-pa-bar-reads")

    def test_without_eal(self):
        self.passed("pair", "example-pair")

    def test_pointers_as_addresses_need_a_wider_iommu(self):
        self.passed("iommu-too-narrow")

    def test_no_fault_and_no_interrupt(self):
        """Everything that a card touched was mapped; no interrupt was asked for."""
        for key in ("iommu_faults", "refused_accesses", "interrupts"):
            self.assertEqual(self.count(key), 0, key)

    def test_both_cards_counted_the_same(self):
        self.wired_to_each_other()


if __name__ == "__main__":
    harness.main()
