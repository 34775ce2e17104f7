#include "fpga/cardsim/doorbell.hpp"

#include <cstring>

#include "fpga/cardsim/complain.hpp"
#include "fpga/cardsim/event_irqs.hpp"
#include "fpga/cardsim/iommu_memory.hpp"
#include "fpga/cardsim/ivshmem_server.hpp"
#include "fpga/cardsim/shared_bar.hpp"

namespace rio::cardsim {
namespace {

class Doorbell final : public Attachment {
 public:
  Doorbell(const name::Doorbell& way, const CardSpec& spec) : way_(way), spec_(spec) {}

  [[nodiscard]] int open();

  uint8_t* bar() override { return bar_.va(); }
  model::HostMemory& memory() override { return *memory_; }
  model::IrqSink* irqs() override { return &irqs_; }
  void begin_turn() override { memory_->begin_turn(gen_req_of(bar_)); }
  void serve() override;
  Peer peer() const override;
  int renew() override;
  void add_wake_fds(std::vector<pollfd>* fds) const override;
  AttachmentCounts counts() const override;

 private:
  [[nodiscard]] int open_bar();

  name::Doorbell way_;
  CardSpec spec_;
  SharedBar bar_;
  std::unique_ptr<GuestMemory> memory_;
  EventIrqs irqs_;   // rung by the card
  EventIrqs rings_;  // rung by the guest
  std::vector<uint64_t> rung_;
  IvshmemServer server_;
};

int Doorbell::open_bar() {
  return SharedBar::anonymous("rio-cardsim-bar", model::Card::bar_bytes(spec_.model.queue_pairs),
                              &bar_);
}

int Doorbell::open() {
  int rc = open_bar();
  rc = rc != 0 ? rc : irqs_.open(way_.vectors);
  rc = rc != 0 ? rc : rings_.open(way_.vectors);
  if (rc != 0) {
    complain("%s: no memory for the BAR or its eventfds: %s; raise ulimit -n?", spec_.name.c_str(),
             std::strerror(-rc));
    return rc;
  }
  rung_.resize(way_.vectors);
  memory_ = guest_memory_of(way_.guest);
  return server_.open(way_.socket);
}

void Doorbell::serve() {
  memory_->serve();
  server_.serve(bar_.fd(), irqs_.fds(), rings_.fds());
  for (uint32_t vector = 0; vector < way_.vectors; ++vector) {
    rung_[vector] += rings_.take(vector);
  }
}

Attachment::Peer Doorbell::peer() const {
  switch (server_.peer()) {
    case IvshmemServer::Peer::kHere:
      return Peer::kHere;
    case IvshmemServer::Peer::kGone:
      return Peer::kGone;
    default:
      return Peer::kNotYet;
  }
}

int Doorbell::renew() {
  if (const int rc = open_bar(); rc != 0) {
    return rc;
  }
  memory_->forget_guest();
  server_.forget();
  return 0;
}

void Doorbell::add_wake_fds(std::vector<pollfd>* fds) const {
  server_.add_wake_fds(fds);
  for (const int fd : rings_.fds()) {
    fds->push_back({fd, POLLIN, 0});
  }
}

AttachmentCounts Doorbell::counts() const {
  AttachmentCounts counts;
  counts.iommu_faults = memory_->faults();
  counts.iommu_first = memory_->first_fault();
  counts.peers = server_.guests();
  counts.irqs = irqs_.raised();
  counts.rings = rung_;
  return counts;
}

}  // namespace

int attach_by(const name::Doorbell& doorbell, const CardSpec& spec,
              std::unique_ptr<Attachment>* out) {
  auto attachment = std::make_unique<Doorbell>(doorbell, spec);
  if (const int rc = attachment->open(); rc != 0) {
    return rc;
  }
  *out = std::move(attachment);
  return 0;
}

}  // namespace rio::cardsim
