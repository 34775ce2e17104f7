// dedicated: every port streams into all dedicated queues of its peer at once. [S0]
#include "apps/testpmd/dedicated_receiver.hpp"
#include "apps/testpmd/dedicated_sender.hpp"
#include "apps/testpmd/mode.hpp"

namespace rio::testpmd {
namespace {

using regs::kMultiMailboxes;

/// A port: it sends into its lanes, and receives from those of its peer. Lanes are shared with the
/// peer's stream, on whatever thread that is.
class DedicatedStream final : public Stream {
 public:
  DedicatedStream(const RunSetup& setup, TestPort& port) : Stream(setup, port) {}

  [[nodiscard]] int receive_from(const RunSetup& setup, std::shared_ptr<DedicatedPath> lane,
                                 std::string* error) {
    receivers_.push_back(std::make_unique<DedicatedReceiver>(setup, *lane, *this));
    lanes_.push_back(std::move(lane));
    return receivers_.back()->start(error);
  }
  [[nodiscard]] int send_into(const RunSetup& setup, std::shared_ptr<DedicatedPath> lane,
                              uint32_t lanes, std::string* error) {
    const auto index = static_cast<uint32_t>(senders_.size());
    senders_.push_back(std::make_unique<DedicatedSender>(setup, *lane, lanes, index, *this));
    pairs_ = std::max(pairs_, lane->from_pair + 1);
    lanes_.push_back(std::move(lane));
    return senders_.back()->start(error);
  }

  uint32_t turn(bool may_send) noexcept override;
  [[nodiscard]] bool quiet() const noexcept override;

 private:
  uint32_t pairs_ = 0;
  std::vector<std::shared_ptr<DedicatedPath>> lanes_;  // outlive what uses them
  std::vector<std::unique_ptr<DedicatedReceiver>> receivers_;
  std::vector<std::unique_ptr<DedicatedSender>> senders_;
  pmd::TxDone done_[kBurstMax];
};

uint32_t DedicatedStream::turn(bool may_send) noexcept {
  uint32_t moved = 0;
  for (const auto& receiver : receivers_) {
    moved += receiver->turn(may_send);
  }
  bool finished = true;
  for (const auto& sender : senders_) {
    moved += sender->turn(may_send);
    finished = finished && sender->finished();
  }
  for (uint32_t pair = 0; pair < pairs_; ++pair) {
    const uint32_t n = port_.pair(pair).tx().reap(done_, kBurstMax);
    for (uint32_t i = 0; i < n; ++i) {
      constexpr uint32_t kSlots = DedicatedSender::kCookieSlots;
      senders_[done_[i].cookie / kSlots]->done(done_[i].cookie % kSlots, done_[i]);
    }
    moved += n;
  }
  if (finished) [[unlikely]] {
    set_finished();
  }
  return moved;
}

bool DedicatedStream::quiet() const noexcept {
  const auto is_quiet = [](const auto& end) { return end->quiet(); };
  return std::all_of(senders_.begin(), senders_.end(), is_quiet) &&
         std::all_of(receivers_.begin(), receivers_.end(), is_quiet);
}

uint32_t queues_of(const RunSetup& setup, const TestPort& from) {
  const uint32_t can = std::min(regs::kDedicatedQueues, from.queue_pairs() * kMultiMailboxes);
  return setup.options.queues == 0 ? can : setup.options.queues;
}

int check(const RunSetup& setup, std::string* error) {
  for (const auto& port : setup.ports) {
    const std::string name = "port " + std::to_string(port->index());
    if (port->peer() == nullptr) {
      *error = "dedicated wants both ends in this process, and " + name +
               "'s peer is not; give two --vdev with one wire";
      return -EINVAL;
    }
    if (setup.options.queues > port->queue_pairs() * kMultiMailboxes) {
      *error = "--queues " + std::to_string(setup.options.queues) +
               " are more than there are sources and mailboxes for: a queue takes one of 4 " +
               "mailboxes of one queue pair, and " + name + " has " +
               std::to_string(port->queue_pairs()) + "; add qps=2 to its --vdev";
      return -EINVAL;
    }
  }
  return 0;
}

int make_streams(const RunSetup& setup, Streams* streams, std::string* error) {
  std::vector<std::unique_ptr<DedicatedStream>> made;
  for (const auto& port : setup.ports) {
    made.push_back(std::make_unique<DedicatedStream>(setup, *port));
  }
  for (const auto& port : setup.ports) {
    TestPort& to = *port->peer();
    const uint32_t queues = queues_of(setup, *port);
    for (uint32_t i = 0; i < queues; ++i) {
      auto lane = std::make_shared<DedicatedPath>();
      lane->from = port.get();
      lane->from_pair = i / kMultiMailboxes;
      lane->to = &to;
      lane->queue = i;
      lane->source = port->dest_id(lane->from_pair);
      lane->mbox = static_cast<uint8_t>(i % kMultiMailboxes);
      lane->flow = static_cast<uint16_t>(port->index() * regs::kDedicatedQueues + i);
      int rc = made[to.index()]->receive_from(setup, lane, error);
      if (rc == 0) {
        rc = made[port->index()]->send_into(setup, lane, queues, error);
      }
      if (rc != 0) {
        return rc;
      }
    }
  }
  for (auto& stream : made) {
    streams->push_back(std::move(stream));
  }
  return 0;
}

}  // namespace

constinit const Mode kDedicatedMode = {.name = "dedicated",
                                       .max_bytes = kTransferBytesMax,
                                       .takes_offset = true,
                                       .latency_of = "a transfer, first message to last response",
                                       .check = check,
                                       .make_streams = make_streams};

}  // namespace rio::testpmd
