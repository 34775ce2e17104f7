#include "fpga/sim/plain.hpp"

#include <cstring>

#include "fpga/sim/guest_memory.hpp"
#include "fpga/sim/shared_bar.hpp"

namespace rio::sim {
namespace {

class Plain final : public Attachment {
 public:
  Plain(SharedBar bar, std::unique_ptr<GuestMemory> memory)
      : bar_(std::move(bar)), memory_(std::move(memory)) {}

  uint8_t* bar() override { return bar_.va(); }
  model::HostMemory& memory() override { return *memory_; }
  void begin_turn() override { memory_->begin_turn(); }
  // Nothing tells when such a guest goes.
  Peer peer() const override { return Peer::kNotYet; }
  int renew() override {
    std::memset(bar_.va(), 0, bar_.len_bytes());
    return 0;
  }
  AttachmentCounts counts() const override {
    AttachmentCounts counts;
    counts.iommu_faults = memory_->faults();
    counts.iommu_first = memory_->first_fault();
    return counts;
  }

 private:
  SharedBar bar_;
  std::unique_ptr<GuestMemory> memory_;
};

}  // namespace

int attach_plain(const CardSpec& spec, std::unique_ptr<Attachment>* out) {
  SharedBar bar;
  if (const int rc =
          SharedBar::of_file(spec.bar, model::Card::bar_bytes(spec.model.queue_pairs), &bar);
      rc != 0) {
    return rc;
  }
  *out = std::make_unique<Plain>(std::move(bar), std::make_unique<GuestMemory>(spec.ram));
  return 0;
}

}  // namespace rio::sim
