#include "pmd/bus/emu/sim_bus.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>

#include "base/fd.hpp"
#include "base/fork.hpp"
#include "base/log.hpp"
#include "base/mapping.hpp"
#include "pmd/bus/emu/sim_client.hpp"

namespace rio::pmd {
namespace {

constexpr size_t kPageBytes = cardsim::protocol::kPageBytes;

/// Where bus addresses begin: far from any pointer, so that mixing the two up is refused.
constexpr uint64_t kFirstIova = 1ull << 52;

/// Memory that can be sent to another process, and that cannot be made smaller.
[[nodiscard]] int make_memfd(size_t len_bytes, base::Fd* out) {
  base::Fd fd(memfd_create("riopmd-dma", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || ftruncate(fd.get(), static_cast<off_t>(len_bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return -errno;
  }
  *out = std::move(fd);
  return 0;
}

/// Map it at a multiple of `align_bytes`.
[[nodiscard]] int map_aligned(const base::Fd& fd, size_t len_bytes, size_t align_bytes,
                              base::Mapping* out) {
  base::Mapping memory;
  if (base::Mapping::of_addresses(len_bytes, align_bytes, &memory) != 0 ||
      base::map_shared(memory.va(), len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                       fd.get(), base::ChildFinds::kCopy) == MAP_FAILED) {
    return -ENOMEM;
  }
  *out = std::move(memory);
  return 0;
}

class SimBus final : public Bus {
 public:
  SimBus(std::string name, std::unique_ptr<SimClient> client)
      : name_(std::move(name)), client_(std::move(client)) {}
  SimBus(const SimBus&) = delete;
  SimBus& operator=(const SimBus&) = delete;
  ~SimBus() override {
    client_.reset();  // the card goes with its user, and uses nothing afterwards
    for (auto& [va, area] : areas_) {
      unmap(area);
    }
  }

  Mmio bar() override { return {client_->bar(), client_->bar_bytes()}; }
  int dma_alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) override;
  void dma_free(const DmaMemory& memory) override;
  int dma_map(void* va, size_t len_bytes, std::vector<IovaRun>* /*runs*/) override {
    base::log_error(
        "%s: memory of the program's own (%p, %zu bytes) cannot be shown to a card in another "
        "process; take it from alloc(), or let it be copied",
        name_.c_str(), va, len_bytes);
    return -ENOTSUP;
  }
  int dma_unmap(void* /*va*/, size_t /*len_bytes*/) override {
    return -ENOENT;  // nothing was ever mapped
  }
  int irq_fd(uint32_t vector) override { return client_->irq_fd(vector); }
  const std::string& name() const override { return name_; }
  int numa_node() const override { return -1; }

 private:
  /// Memory of dma_alloc().
  struct Area {
    uint64_t iova = 0;
    base::Mapping memory;
    base::Fd fd;  // kept open: a forked child maps its copy from it
  };
  static void unmap(Area& area) {
    base::forget_in_child(area.memory.va());
    area.memory.reset();
  }

  std::string name_;
  std::unique_ptr<SimClient> client_;
  std::map<void*, Area> areas_;
  uint64_t next_iova_ = kFirstIova;
};

int SimBus::dma_alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) {
  const size_t len = (len_bytes + kPageBytes - 1) & ~(kPageBytes - 1);
  if (len_bytes == 0 || len < len_bytes || !std::has_single_bit(align_bytes)) {
    return -EINVAL;
  }
  base::Fd fd;
  Area area;
  int rc = make_memfd(len, &fd);
  rc = rc != 0 ? rc : map_aligned(fd, len, align_bytes, &area.memory);
  if (rc != 0) {
    base::log_error(
        "%s: no %zu bytes for the card's rings and buffers: %s; take smaller rings or give "
        "more memory",
        name_.c_str(), len_bytes, std::strerror(-rc));
    return rc;
  }
  area.iova = (next_iova_ + align_bytes - 1) & ~(static_cast<uint64_t>(align_bytes) - 1);
  if (rc = client_->map(fd.get(), area.iova, len); rc != 0) {
    unmap(area);
    return rc;
  }
  uint8_t* const va = area.memory.va();
  area.fd = std::move(fd);
  next_iova_ = area.iova + len + kPageBytes;  // a hole between any two
  *out = {va, area.iova, len_bytes};
  areas_.emplace(va, std::move(area));
  return 0;
}

void SimBus::dma_free(const DmaMemory& memory) {
  const auto it = areas_.find(memory.va);
  if (it == areas_.end()) {
    return;
  }
  const int rc = client_->unmap(it->second.iova);
  static_cast<void>(rc);  // logged; the server's own mapping keeps the memory, not ours
  unmap(it->second);
  areas_.erase(it);
}

}  // namespace

int open_sim_bus(const name::Sim& card, std::unique_ptr<Bus>* out) {
  std::unique_ptr<SimClient> client;
  const int rc = SimClient::open(card.socket, card.wait_ms, &client);
  if (rc == 0) {
    *out = std::make_unique<SimBus>("sim:" + card.socket, std::move(client));
  }
  return rc;
}

}  // namespace rio::pmd
