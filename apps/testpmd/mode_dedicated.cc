// dedicated: every port streams into all dedicated queues of its peer at once. [S0]
#include "apps/testpmd/dedicated_path.hpp"
#include "apps/testpmd/mode.hpp"
#include "apps/testpmd/text.hpp"

namespace rio::testpmd {
namespace {

/// A port: it sends into its paths, and receives from those of its peer. Paths are shared with the
/// peer's stream, on whatever thread that is.
class DedicatedStream final : public Stream {
 public:
  DedicatedStream(const RunSetup& setup, TestPort& port) : Stream(setup, port) {}

  [[nodiscard]] int receive_from(const RunSetup& setup, const std::shared_ptr<DedicatedPath>& path,
                                 std::string* error) {
    receivers_.push_back(std::make_unique<DedicatedReceiver>(setup, path, *this));
    return receivers_.back()->start(error);
  }
  [[nodiscard]] int send_into(const RunSetup& setup, const std::shared_ptr<DedicatedPath>& path,
                              uint32_t paths, std::string* error) {
    const auto index = static_cast<uint32_t>(senders_.size());
    senders_.push_back(std::make_unique<DedicatedSender>(setup, path, paths, index, *this));
    pairs_ = std::max(pairs_, path->from_pair + 1);
    return senders_.back()->start(error);
  }

  uint32_t turn(bool may_send) noexcept override;
  [[nodiscard]] bool quiet() const noexcept override {
    const auto is_quiet = [](const auto& end) { return end->quiet(); };
    return std::ranges::all_of(senders_, is_quiet) && std::ranges::all_of(receivers_, is_quiet);
  }

 private:
  uint32_t pairs_ = 0;
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

int check(const RunSetup& setup, std::string* error) {
  for (const auto& port : setup.ports) {
    if (port->peer() == nullptr) {
      return fail(error,
                  "dedicated wants both ends in this process, and port %u's peer is not; give two "
                  "--vdev with one wire",
                  port->index);
    }
    if (setup.options.queues > port->queue_pairs() * regs::kMultiMailboxes) {
      return fail(error,
                  "--queues %u are more than there are sources and mailboxes for: a queue takes "
                  "one of 4 mailboxes of one queue pair, and port %u has %u; add qps=2 to its "
                  "--vdev",
                  setup.options.queues, port->index, port->queue_pairs());
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
    const uint32_t most =
        std::min(regs::kDedicatedQueues, port->queue_pairs() * regs::kMultiMailboxes);
    const uint32_t queues = setup.options.queues == 0 ? most : setup.options.queues;
    for (uint32_t i = 0; i < queues; ++i) {
      const auto path = std::make_shared<DedicatedPath>(*port, i);
      if (made[path->to.index]->receive_from(setup, path, error) != 0 ||
          made[port->index]->send_into(setup, path, queues, error) != 0) {
        return -EINVAL;
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
                                       .latency_of = "a transfer, first message to last response",
                                       .check = check,
                                       .make_streams = make_streams};

}  // namespace rio::testpmd
