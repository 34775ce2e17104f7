"""uio_pci_generic, one card that hears itself, with interrupts, which are useless there; it loses
its state, then it vanishes."""
import harness
from machine import Card


class UioLoss(harness.GuestCase):
    cards = [Card("doorbell")]
    scenarios = ["uio", "guest", "uio_limits", "lost", "testpmd_lost", "vanished"]

    def test_cards_are_found(self):
        self.passed("find-unbound", "find-bound")

    def test_without_eal(self):
        self.passed("messages", "large", "dedicated", "dma", "doorbells", "example")

    def test_killed_process_with_a_living_child(self):
        self.passed("killed")

    def test_only_hugepages_and_no_interrupts(self):
        self.passed("memory-uio", "uio-interrupts")

    def test_reset_under_traffic(self):
        self.passed("lost-state", "testpmd-lost-code", "testpmd-lost-told", "testpmd-lost-again")

    def test_vanished_under_traffic(self):
        self.passed("vanished")


if __name__ == "__main__":
    harness.main()
