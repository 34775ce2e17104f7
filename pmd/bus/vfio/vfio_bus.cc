#include "pmd/bus/vfio/vfio_bus.hpp"

#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <map>
#include <string>

#include "base/log.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/vfio/backend.hpp"
#include "pmd/bus/vfio/dma_arena.hpp"
#include "pmd/bus/vfio/remedy.hpp"

namespace rio::pmd::vfio {

namespace {

/// A real card, through the driver that it is bound to.
class VfioBus final : public Bus {
 public:
  VfioBus(PciCard card, std::unique_ptr<Backend> backend, Kernel& kernel, const PciPaths& paths)
      : card_(std::move(card)),
        backend_(std::move(backend)),
        arena_(*backend_, kernel, paths, card_.address) {}
  VfioBus(const VfioBus&) = delete;
  VfioBus& operator=(const VfioBus&) = delete;
  ~VfioBus() override {
    if (backend_->stop_dma() != 0 && backend_->hugepages_only()) {
      arena_.leak();
    }
    for (const auto& [va, mapping] : user_) {
      (void)backend_->unmap(reinterpret_cast<void*>(va), mapping.len_bytes, mapping.runs);
    }
  }

  Mmio bar() override { return backend_->bar(); }
  int dma_alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) override {
    return arena_.allocate(len_bytes, align_bytes, out);
  }
  void dma_free(const DmaMemory& memory) override { arena_.free(memory); }
  int dma_map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) override;
  int dma_unmap(void* va, size_t len_bytes) override;
  bool reaches_all_memory() const override { return backend_->hugepages_only(); }
  int start_dma() override {
    arena_.remove_leftovers();
    return backend_->start_dma();
  }
  int stop_dma() override { return backend_->stop_dma(); }
  int irq_fd(uint32_t vector) override { return backend_->irq_fd(vector); }
  const std::string& name() const override { return card_.address; }
  int numa_node() const override { return card_.numa_node; }

  [[nodiscard]] int check_magic(Kernel& kernel);

 private:
  struct UserMapping {
    size_t len_bytes;
    std::vector<IovaRun> runs;
  };

  PciCard card_;
  std::unique_ptr<Backend> backend_;
  DmaArena arena_;  // declared after the backend, so that its memory is unmapped first
  std::map<uintptr_t, UserMapping> user_;
};

int VfioBus::check_magic(Kernel& kernel) {
  const uint32_t magic = await_magic(bar(), [&kernel] { kernel.nap(); });
  if (magic == regs::kMagic) {
    return 0;
  }
  if (magic == regs::kAllOnes) {
    base::log_error(
        "%s: the card has answered all ones for a second: it is gone, unpowered, or was "
        "reprogrammed since the "
        "last scan: %s",
        name().c_str(), rescan_command(name()).c_str());
    return -ENODEV;
  }
  base::log_error(
      "%s: BAR%d begins with %08x, a card's with %08x: load the message card's gateware, or "
      "open another device (%04x:%04x is not ours)",
      name().c_str(), card_.bar, magic, regs::kMagic, card_.vendor, card_.device);
  return -ENXIO;
}

int VfioBus::dma_map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) {
  const auto begin = reinterpret_cast<uintptr_t>(va);
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  if (va == nullptr || len_bytes == 0 || begin % page != 0 || len_bytes % page != 0 ||
      len_bytes > UINTPTR_MAX - begin) {
    base::log_error("%s: cannot map %zu bytes at %p: both must be multiples of %zu", name().c_str(),
                    len_bytes, va, static_cast<size_t>(page));
    return -EINVAL;
  }
  const auto next = user_.lower_bound(begin);
  const bool overlaps =
      (next != user_.end() && next->first < begin + len_bytes) ||
      (next != user_.begin() && std::prev(next)->first + std::prev(next)->second.len_bytes > begin);
  if (overlaps || arena_.overlaps(va, len_bytes)) {
    base::log_error("%s: %zu bytes at %p are mapped already, in part or whole", name().c_str(),
                    len_bytes, va);
    return -EEXIST;
  }
  std::vector<IovaRun> found;
  if (const int rc = backend_->map(va, len_bytes, &found); rc != 0) {
    return rc;
  }
  user_.emplace(begin, UserMapping{len_bytes, found});
  *runs = std::move(found);
  return 0;
}

int VfioBus::dma_unmap(void* va, size_t len_bytes) {
  const auto it = user_.find(reinterpret_cast<uintptr_t>(va));
  if (it == user_.end() || it->second.len_bytes != len_bytes) {
    base::log_error("%s: cannot unmap %zu bytes at %p: they were not mapped as one", name().c_str(),
                    len_bytes, va);
    return -EINVAL;
  }
  const int rc = backend_->unmap(va, len_bytes, it->second.runs);
  user_.erase(it);
  return rc;
}

}  // namespace

int open_vfio_bus(const name::Pci& name, const PciPaths& paths, std::unique_ptr<Bus>* out,
                  Kernel& kernel) {
  PciCard card;
  if (const int rc = find_card(paths, name.address, &card); rc != 0) {
    return rc;
  }
  std::unique_ptr<Backend> backend;
  int rc = 0;
  if (card.driver == kVfioDriver) {
    rc = open_vfio_backend(paths, kernel, card, &backend, name);
  } else if (card.driver == kUioDriver || card.driver == kIgbUioDriver) {
    rc = open_uio_backend(paths, kernel, card, &backend);
  } else {
    base::log_error(
        "%s: it is bound to %s, not to vfio-pci or uio_pci_generic: %s", card.address.c_str(),
        card.driver.empty() ? "no driver" : ("the driver " + card.driver).c_str(),
        bind_command(card.address, card.iommu_group >= 0 ? kVfioDriver : kUioDriver).c_str());
    rc = -EBUSY;
  }
  if (rc != 0) {
    return rc;
  }
  if (name.reset) {
    rc = backend->reset();
    if (rc != 0 && rc != -ENOTSUP) {
      base::log_warning(
          "%s: opened without a function-level reset; relying on the card's own reset",
          card.address.c_str());
    }
  }
  auto bus = std::make_unique<VfioBus>(card, std::move(backend), kernel, paths);
  if (rc = bus->check_magic(kernel); rc != 0) {
    return rc;
  }
  *out = std::move(bus);
  return 0;
}

}  // namespace rio::pmd::vfio
