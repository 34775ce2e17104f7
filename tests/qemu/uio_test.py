"""uio_pci_generic: no IOMMU, physical addresses, no interrupts. Two cards, wired to each other."""
import harness
from machine import Card


class Uio(harness.GuestCase):
    cards = [Card("plain", devfn="04.0"), Card("plain", devfn="05.0")]
    scenarios = ["uio", "testpmd", "pair"]

    def test_cards_are_found(self):
        self.passed("find-unbound", "find-bound")

    def test_testpmd_in_every_mode(self):
        self.passed("testpmd-pa", "testpmd-pa-modes", "testpmd-pa-bar-reads")

    def test_without_eal(self):
        self.passed("pair", "example-pair")

    def test_both_cards_counted_the_same(self):
        self.wired_to_each_other()


if __name__ == "__main__":
    harness.main()
