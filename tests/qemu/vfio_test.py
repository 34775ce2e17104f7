"""vfio-pci behind an IOMMU of 48 bits, with addresses chosen by the driver or by EAL (VA). One card
with interrupts that hears itself; in the end it loses its state, then it vanishes."""
import harness
from machine import Card


class Vfio(harness.GuestCase):
    cards = [Card("doorbell")]
    iommu = 48
    scenarios = ["vfio", "guest", "iommu", "testpmd_loop", "processes", "refused", "lost", "testpmd_vanished"]

    def test_cards_are_found(self):
        self.passed("find-unbound", "find-bound")

    def test_without_eal(self):
        self.passed("messages", "large", "dedicated", "dma", "doorbells", "example")

    def test_killed_process_with_a_living_child(self):
        self.passed("killed")

    def test_user_memory(self):
        self.passed("memory", "memory-virtual")

    def test_unmapped_addresses_are_faults(self):
        """The IOMMU's walker counts each deliberate fault, and no other."""
        self.passed("unmapped")
        self.assertEqual(self.count("iommu_faults"), self.boot.facts["faults"])
        self.assertEqual(self.count("refused_accesses"), self.boot.facts["faults"])

    def test_interrupts(self):
        """Each interrupt raised has woken the guest."""
        self.passed("interrupts", "interrupts-eal")
        self.assertEqual(self.count("interrupts"), self.boot.facts["interrupts"])

    def test_testpmd_on_a_loop(self):
        self.passed("testpmd-loop-io", "testpmd-loop-dedicated")

    def test_two_processes(self):
        self.passed("primary-claimed", "secondary-claimed", "primary-moves", "secondary-moves", "late-busy",
                    "heir-claimed", "heir-moves", "heir-stopped", "primary-stopped")

    def test_wrong_bindings_are_refused(self):
        self.passed("no-such-card", "foreign-device", "uio-behind-iommu")

    def test_reset_under_traffic(self):
        self.passed("lost-state")

    def test_vanished_under_traffic(self):
        self.passed("testpmd-vanished-code", "testpmd-vanished-told")


if __name__ == "__main__":
    harness.main()
