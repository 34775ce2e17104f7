/// @file
/// A bus with a card that lives in a rio-cardsim process.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/fd.hpp"
#include "base/mapping.hpp"
#include "fpga/name/card_name.hpp"
#include "pmd/bus/bus.hpp"

namespace rio::pmd {

class SimClient;

/// As a PCI bus: nothing of the card runs in this process, so there are no hooks, and interrupts
/// work. Memory of the card's users is shared memory that the bus makes; the program's own cannot
/// be shown to another process. A rio-cardsim that dies is a card that is gone.
class SimBus final : public Bus {
 public:
  /// @return as SimClient::open().
  [[nodiscard]] static int open(const name::Sim& card, std::unique_ptr<SimBus>* out);
  ~SimBus() override;
  SimBus(const SimBus&) = delete;
  SimBus& operator=(const SimBus&) = delete;

  [[nodiscard]] Mmio bar() override;
  [[nodiscard]] int dma_alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) override;
  void dma_free(const DmaMemory& memory) override;
  [[nodiscard]] int dma_map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) override;
  [[nodiscard]] int dma_unmap(void* va, size_t len_bytes) override;
  [[nodiscard]] int irq_fd(uint32_t vector) override;
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] int numa_node() const override { return -1; }

 private:
  /// Memory of dma_alloc().
  struct Area {
    uint64_t iova = 0;
    base::Mapping memory;
    base::Fd fd;  // kept open: a forked child maps its copy from it
  };
  static void unmap(Area& area);

  SimBus(std::string name, std::unique_ptr<SimClient> client);

  std::string name_;
  std::unique_ptr<SimClient> client_;
  std::map<void*, Area> areas_;
  uint64_t next_iova_;
};

}  // namespace rio::pmd
