#include <cstring>

#include "fpga/cardsim/attachment.hpp"
#include "fpga/cardsim/guest_memory.hpp"

namespace rio::cardsim {
namespace {

class Plain final : public Attachment {
 public:
  Plain(const name::Guest& guest, SharedBar bar) : memory_(guest) { bar_ = std::move(bar); }

  model::HostMemory& memory() override { return memory_; }
  void begin_turn() override { memory_.begin_turn(bar_.gen_req()); }
  /// Only a monitor shows that such a guest comes or goes.
  void serve() override {
    memory_.serve();
    if (memory_.guest_gone()) {
      peer_ = Peer::kGone;
    } else if (memory_.guest_here() && peer_ == Peer::kNotYet) {
      welcome_peer();
    }
  }

  int renew() override {
    std::memset(bar_.va(), 0, bar_.len_bytes());
    memory_.forget_guest();
    peer_ = Peer::kNotYet;
    return 0;
  }

 private:
  GuestMemory memory_;
};

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
