"""vfio-pci: the card is unbound while messages run. A boot of its own: rio-cardsim does not see that
the kernel ends its bus mastering, and what it still does are faults of the IOMMU."""
import harness
from machine import Card


class VfioUnbind(harness.GuestCase):
    cards = [Card("doorbell")]
    iommu = 48
    scenarios = ["vfio", "unbind"]

    def test_released_under_traffic(self):
        self.passed("unbind", "rebound")
        print(f"released after {self.boot.facts['unbind_ms']} ms")

    def test_testpmd_ends(self):
        self.passed("testpmd-unbind", "testpmd-unbound-code")


if __name__ == "__main__":
    harness.main()
