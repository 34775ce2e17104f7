// pingpong: one message goes to and fro between two ports; half a round trip is the latency.
#include <utility>

#include "apps/testpmd/mode.hpp"
#include "apps/testpmd/text.hpp"

namespace rio::testpmd {
namespace {

constexpr uint32_t kSendBuffers = 16;  // far more than messages that can be in flight
constexpr uint32_t kTurnsBetweenReaps = 64;

/// One end. The first end starts, and starts again when the message is lost.
class PingPong final : public Stream {
 public:
  PingPong(const RunSetup& setup, TestPort& port)
      : Stream(setup, port),
        rx_(port.pair().shared()),
        tx_(port.pair().tx()),
        first_(port.index < port.peer()->index),
        inline_(setup.size_bytes <= port.card().caps().inline_bytes),
        turn_is_mine_(first_),
        send_(size_bytes_, offset_bytes_, port.card().caps().tx_addr_align) {
    expected_flow_ = static_cast<uint16_t>(port.peer()->index);
    if (!first_) {
      left_ = UINT64_MAX;
      set_finished();  // it answers as long as it is asked
    }
  }

  [[nodiscard]] int open(std::string* error) override {
    return send_.allocate(port_.card().bus(), kSendBuffers, error);
  }
  uint32_t turn(bool may_send) noexcept override;
  [[nodiscard]] std::string label() const override {
    return (first_ ? "ping " : "pong ") + Stream::label();
  }

 private:
  void take(const pmd::RxMessage& message, uint64_t asked_tsc, uint64_t now_tsc) noexcept;
  void send(uint64_t now_tsc) noexcept;
  void reap() noexcept;

  pmd::SharedRxQueue& rx_;
  pmd::TxQueue& tx_;
  const bool first_;
  const bool inline_;
  bool turn_is_mine_;
  uint32_t buffer_ = 0;
  uint32_t idle_turns_ = 0;
  uint64_t sent_tsc_ = 0;
  SendBuffers send_;
};

/// @param asked_tsc when the message went out that this one answers, 0 if none.
void PingPong::take(const pmd::RxMessage& message, uint64_t asked_tsc, uint64_t now_tsc) noexcept {
  const bool good = message.status == pmd::Status::kOk;
  if (good && verifier_.verifies()) {
    uint64_t stamp = 0;
    (void)verifier_.read(pool_.va(message.cookie), message.length_bytes, expected_flow_, &stamp);
  }
  const pmd::RxBuffer buffer{.iova = message.cookie, .cookie = message.cookie};
  port_.shared_posted -= 1u - rx_.post(&buffer, 1);
  if (!good) {
    stats.count_status(message.status);
    return;  // its sender will be told, and send again
  }
  if (first_ && asked_tsc != 0) {
    latency.add((now_tsc - asked_tsc) / 2);
  }
  stats.rx_messages.add(1);
  stats.rx_bytes.add(size_bytes_);
}

void PingPong::send(uint64_t now_tsc) noexcept {
  const uint64_t buffer = send_.buffer(buffer_);
  if (verifier_.verifies()) {
    verifier_.write(send_.payload(buffer), flow_, now_tsc);
  }
  if (!inline_ && send_.bounced()) {
    send_.bounce(buffer);
  }
  pmd::TxMessage message{.iova = send_.wire(buffer),
                         .cookie = 0,
                         .dest_id = port_.peer_dest_id(),
                         .length_bytes = static_cast<uint16_t>(size_bytes_),
                         .mbox = 0,
                         .flags = 0};
  if (inline_) {
    message.data = send_.payload(buffer);
    message.flags = pmd::TxFlags::kInline;
  }
  sent_tsc_ = now_tsc;
  // The ring is never full: one message at a time.
  const uint32_t sent = tx_.burst(&message, 1);
  count_sent(sent);
  buffer_ = (buffer_ + 1) % kSendBuffers;
  turn_is_mine_ = false;
  ((inline_ || send_.bounced()) ? stats.bytes_copied : stats.bytes_placed).add(size_bytes_);
}

void PingPong::reap() noexcept {
  pmd::TxDone done[4];
  (void)reap_sent(tx_, done, 4, [this](const pmd::TxDone& failed) {
    verifier_.failed(flow_, failed.status);
    turn_is_mine_ = true;
    sent_tsc_ = 0;
  });
}

uint32_t PingPong::turn(bool may_send) noexcept {
  pmd::RxMessage message;
  const bool came = rx_.burst(&message, 1) != 0;
  const bool good = came && message.status == pmd::Status::kOk;
  turn_is_mine_ = turn_is_mine_ || good;
  const bool sends = turn_is_mine_ && may_send && left_ != 0 && !pause_.pausing();
  if (came || sends) {
    const uint64_t now_tsc = first_ || verifier_.verifies() ? rte_rdtsc() : 0;
    const uint64_t asked_tsc = std::exchange(sent_tsc_, good ? 0 : sent_tsc_);
    if (sends) {
      send(now_tsc);
    }
    // Work that the answer does not need is done while it is on its way.
    if (came) {
      take(message, asked_tsc, now_tsc);
    }
    if (in_flight_ > 1) {
      reap();
    }
  }
  if (sends) {
    return 1;
  }
  if (left_ == 0 && turn_is_mine_) [[unlikely]] {
    set_finished();
  }
  // A look at the completions is a step of the card, too: rarely, while the answer is awaited, but
  // always when the run drains.
  if (in_flight_ != 0 && (++idle_turns_ % kTurnsBetweenReaps == 0 || !may_send || left_ == 0)) {
    reap();
  }
  return good ? 1 : 0;
}

bool has_partner(const TestPort& port) {
  return port.peer() != nullptr && port.peer() != &port;
}

int check(const RunSetup& setup, std::string* error) {
  if (std::ranges::any_of(setup.ports, [](const auto& port) { return has_partner(*port); })) {
    return 0;
  }
  return fail(error,
              "pingpong needs two ports that are wired to each other, and there is %zu without "
              "such a partner; give two --vdev with one wire: --vdev raw_rio0,wire=pair0 "
              "--vdev raw_rio1,wire=pair0",
              setup.ports.size());
}

std::unique_ptr<Stream> make(const RunSetup& setup, TestPort& port) {
  return has_partner(port) ? std::make_unique<PingPong>(setup, port) : nullptr;
}

}  // namespace

constinit const Mode kPingpongMode = {.name = "pingpong",
                                      .latency_of = "half a round trip",
                                      .check = check,
                                      .make_streams = make_each<make>};

}  // namespace rio::testpmd
