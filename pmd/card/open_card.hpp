/// @file
/// From what a bus of EAL has found to a card. Control path, under control_lock(). Functions return
/// 0 or -errno; the cause is logged.
#pragma once

#include <memory>
#include <string>

#include "pmd/card/eal_card.hpp"

struct rte_pci_device;

namespace rio::pmd {

/// The emulated card of a virtual device. @param name of the device. @param args of the primary
/// process; a secondary uses the primary's card as it is.
[[nodiscard]] int open_emulated_card(const std::string& name, const CardArgs& args,
                                     std::shared_ptr<EalCard>* out);
/// A card that EAL has mapped, or QEMU's ivshmem as a BAR that a card model on the other side
/// serves.
[[nodiscard]] int open_pci_card(rte_pci_device* pci, const CardArgs& args,
                                std::shared_ptr<EalCard>* out);
/// The card of a device that may use another's.
/// @param args "card=NAME[,qp=N]": a card that this process has already, of another device or by
/// its PCI address; else arguments of an emulated card of its own, and qp=N, too.
/// @param own keys of the device besides these two: their functions are called.
/// @param qp -1: any. @return -ENODEV: no such card, -EINVAL.
[[nodiscard]] int open_any_card(const std::string& name, const char* args, OwnKeys own,
                                std::shared_ptr<EalCard>* out, int* qp);
/// The key of a device's queue pair.
[[nodiscard]] name::OwnKey qp_key(int* qp);
/// destID of queue pair 0 if none is given: 0x100 for the first device of a kind, 0x200 for
/// the second, so that cards which are wired to each other differ.
[[nodiscard]] uint32_t default_dest_id(const char* name);

}  // namespace rio::pmd
