// Virtual devices raw_rio0, raw_rio1…: emulated cards.

#include <bus_vdev_driver.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include <functional>

#include "pmd/bus/eal/eal_memory.hpp"
#include "pmd/bus/emu/emu_bus.hpp"
#include "pmd/bus/log.hpp"
#include "pmd/raw/control_thread.hpp"
#include "pmd/raw/devargs.hpp"
#include "pmd/raw/probe.hpp"

namespace rio::pmd {
namespace {

constexpr uint32_t kLinkTimeoutMs = 100;

/// A card of this process.
int make_card(const RawArgs& args, FoundCard* found) {
  const uint32_t number = SharedCard::next_card_number();
  found->shared.set_card_number(number);
  std::unique_ptr<EalMemory> memory;
  if (const int rc = EalMemory::create(SharedCard::zone_tag(number, own_token()), &memory);
      rc != 0) {
    return rc;
  }
  std::unique_ptr<EmuBus> bus;
  // A thread of the card must not inherit the lcore's CPU from the caller.
  if (const int rc =
          run_in_control_thread([&] { return EmuBus::create(args.emu, std::move(memory), &bus); });
      rc != 0) {
    return rc;
  }
  found->bar = bus->bar_memory();
  found->bus = std::move(bus);
  found->wire = args.emu.wire;
  found->works_alone = args.emu.stepping == Stepping::kThread;
  return 0;
}

/// The card of the primary process.
int join_card(const std::string& name, FoundCard* found) {
  if (const int rc = found->shared.attach(name); rc != 0) {
    return rc;
  }
  const SharedCardLayout& layout = found->shared.layout();
  if (layout.stepping_thread == 0) {
    log_warning(
        "%s: the card works only while the primary process polls it: give the primary "
        "stepping=thread",
        name.c_str());
  }
  std::unique_ptr<EalMemory> memory;
  if (const int rc = EalMemory::create(found->shared.zone_tag(own_token()), &memory); rc != 0) {
    return rc;
  }
  const DmaMemory bar{.va = reinterpret_cast<void*>(layout.bar_va),
                      .iova = layout.bar_iova,
                      .len_bytes = layout.bar_len_bytes};
  std::unique_ptr<EmuBus> bus;
  if (const int rc = EmuBus::attach(bar, std::move(memory), name, &bus); rc != 0) {
    return rc;
  }
  found->bus = std::move(bus);
  found->wire = layout.wire;
  return 0;
}

int make_device(const char* name, const char* args, std::unique_ptr<RawDevice>* out) {
  FoundCard found;
  if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
    const int rc = join_card(name, &found);  // arguments are the primary's
    return rc != 0 ? rc : RawDevice::create(name, {}, std::move(found), out);
  }
  RawArgs parsed;
  parsed.base_dest_id = default_dest_id(name);
  if (const int rc = parse_devargs(name, args, true, &parsed); rc != 0) {
    return rc;
  }
  const int rc = make_card(parsed, &found);
  return rc != 0 ? rc : RawDevice::create(name, parsed, std::move(found), out);
}

int vdev_probe(rte_vdev_device* vdev) {
  const char* const name = rte_vdev_device_name(vdev);
  if (name == nullptr) {
    return -EINVAL;
  }
  const std::lock_guard guard(control_lock());
  std::unique_ptr<RawDevice> device;
  if (const int rc = make_device(name, rte_vdev_device_args(vdev), &device); rc != 0) {
    return rc;
  }
  RawDevice* const made = device.get();
  if (const int rc =
          register_device(&vdev->device, "raw_rio", vdev->device.numa_node, std::move(device));
      rc != 0) {
    return rc;
  }
  // Two cards of a wire have to see each other: what a card gets while its link is down is lost.
  if (RawDevice* const peer = made->peer(); peer != nullptr) {
    (void)made->wait_link(kLinkTimeoutMs);
    (void)peer->wait_link(kLinkTimeoutMs);
  }
  return 0;
}

int vdev_remove(rte_vdev_device* vdev) {
  return unregister_device(rte_vdev_device_name(vdev));
}

/// @return 0, or -1 with rte_errno, as the bus wants it.
int with_vdev(rte_vdev_device* vdev, const std::function<int(RawDevice&)>& work) {
  const std::lock_guard guard(control_lock());
  int rc = -ENODEV;
  for (const uint16_t id : device_ids()) {
    RawDevice* const device = find_device(id);
    if (device->name() == rte_vdev_device_name(vdev)) {
      rc = work(*device);
    }
  }
  if (rc != 0) {
    rte_errno = -rc;
    return -1;
  }
  return 0;
}

int vdev_dma_map(rte_vdev_device* vdev, void* va, uint64_t iova, size_t len_bytes) {
  return with_vdev(vdev, [=](RawDevice& device) { return device.dma_map(va, iova, len_bytes); });
}

int vdev_dma_unmap(rte_vdev_device* vdev, void* va, uint64_t /*iova*/, size_t len_bytes) {
  return with_vdev(vdev, [=](RawDevice& device) { return device.dma_unmap(va, len_bytes); });
}

constexpr rte_vdev_driver make_driver() {
  rte_vdev_driver driver{};
  driver.probe = vdev_probe;
  driver.remove = vdev_remove;
  driver.dma_map = vdev_dma_map;
  driver.dma_unmap = vdev_dma_unmap;
  // Rings and BAR larger than a page must be contiguous for the card.
  driver.drv_flags = RTE_VDEV_DRV_NEED_IOVA_AS_VA;
  return driver;
}

// constinit: a dynamic initialiser would run after the registration below.
constinit rte_vdev_driver raw_rio_vdev = make_driver();

}  // namespace

RTE_PMD_REGISTER_VDEV(raw_rio, raw_rio_vdev);

}  // namespace rio::pmd
