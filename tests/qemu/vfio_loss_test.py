"""vfio-pci behind an IOMMU: a card that loses its state, then vanishes, under traffic."""
import harness
from machine import Card


class VfioLoss(harness.GuestCase):
    cards = [Card("doorbell")]
    iommu = 39
    scenarios = ["vfio", "lost", "testpmd_vanished"]

    def test_reset_under_traffic(self):
        self.passed("lost-state")

    def test_vanished_under_traffic(self):
        self.passed("testpmd-vanished-code", "testpmd-vanished-told")


if __name__ == "__main__":
    harness.main()
