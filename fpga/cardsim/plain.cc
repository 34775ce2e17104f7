#include <cstring>

#include "fpga/cardsim/attachment.hpp"
#include "fpga/cardsim/guest_memory.hpp"
#include "fpga/cardsim/shared_bar.hpp"

namespace rio::cardsim {
namespace {

class Plain final : public Attachment {
 public:
  Plain(const name::Guest& guest, SharedBar bar) : bar_(std::move(bar)), memory_(guest) {}

  uint8_t* bar() override { return bar_.va(); }
  model::HostMemory& memory() override { return memory_; }
  void begin_turn() override { memory_.begin_turn(bar_.gen_req()); }
  void serve() override;
  Peer peer() const override { return peer_; }
  int renew() override {
    std::memset(bar_.va(), 0, bar_.len_bytes());
    memory_.forget_guest();
    peer_ = Peer::kNotYet;
    return 0;
  }
  AttachmentCounts counts() const override { return {guests_, {}, {}}; }

 private:
  SharedBar bar_;
  GuestMemory memory_;
  Peer peer_ = Peer::kNotYet;
  uint64_t guests_ = 0;
};

// Only a monitor shows that such a guest comes or goes.
void Plain::serve() {
  memory_.serve();
  if (memory_.guest_gone()) {
    peer_ = Peer::kGone;
  } else if (memory_.guest_here() && peer_ == Peer::kNotYet) {
    peer_ = Peer::kHere;
    ++guests_;
  }
}

}  // namespace

int attach(const name::Plain& plain, const CardSpec& spec, std::unique_ptr<Attachment>* out) {
  SharedBar bar;
  if (const int rc =
          SharedBar::of_file(plain.bar, model::Card::bar_bytes(spec.model.queue_pairs), &bar);
      rc != 0) {
    return rc;
  }
  *out = std::make_unique<Plain>(plain.guest, std::move(bar));
  return 0;
}

}  // namespace rio::cardsim
