// pingpong: two cards on one wire send a message to and fro, and verify it each time.
// usage: pingpong [CARD CARD], by default "emu:wire" twice: two ends of an emulated wire
#include <cstdio>
#include <cstring>
#include <memory>
#include <riopmd.hpp>

namespace {

constexpr uint32_t kRounds = 1000;
constexpr uint16_t kBytes = 256;

int fail(const char* what) {
  std::fprintf(stderr, "pingpong: %s\n", what);
  return 1;
}

/// A card, one buffer to send from, and the rest posted to receive into.
struct End {
  std::unique_ptr<rio::Endpoint> card;
  uint32_t own = 0;  // index of the buffer to send from

  int open(const char* name, uint32_t dest_id) {
    rio::EndpointConfig config;
    config.dest_id = dest_id;
    config.message_buffers = 64;
    if (const int rc = rio::Endpoint::open(name, config, &card); rc != 0) {
      return rc;  // the log has said why
    }
    (void)card->buffers()->get(&own, 1);
    uint32_t index = 0;
    while (card->buffers()->get(&index, 1) == 1) {
      post(index);
    }
    return 0;
  }

  void post(uint32_t index) const {
    const rio::pmd::RxBuffer empty{card->buffers()->iova(index), index};
    (void)card->shared().post(&empty, 1);
  }

  [[nodiscard]] bool send(uint32_t dest_id, uint8_t value) const {
    std::memset(card->buffers()->va(own), value, kBytes);
    rio::pmd::TxMessage message{};
    message.iova = card->buffers()->iova(own);
    message.dest_id = dest_id;
    message.length_bytes = kBytes;
    return card->tx().burst(&message, 1) == 1;
  }

  /// Has the message that was sent been delivered? Only then is its buffer ours again.
  [[nodiscard]] int delivered() const {
    rio::pmd::TxDone done;
    if (card->tx().reap(&done, 1) == 0) {
      return 0;
    }
    return done.status == rio::pmd::Status::kOk ? 1 : -1;
  }

  /// @return 1: the message has come, and is right; 0: not yet; -1: it is wrong.
  [[nodiscard]] int receive(uint8_t value) const {
    rio::pmd::RxMessage message;
    if (card->shared().burst(&message, 1) == 0) {
      return 0;
    }
    const auto index = static_cast<uint32_t>(message.cookie);
    const uint8_t* const bytes = card->buffers()->va(index);
    const bool right = message.status == rio::pmd::Status::kOk && message.length_bytes == kBytes &&
                       bytes[0] == value && std::memcmp(bytes, bytes + 1, kBytes - 1) == 0;
    post(index);
    return right ? 1 : -1;
  }
};

/// One message, from its sending to its delivery.
bool pass(const End& from, const End& to, uint32_t dest_id, uint8_t value) {
  bool sent = from.send(dest_id, value);
  int received = 0;
  int delivered = 0;
  while (sent && (received == 0 || delivered == 0)) {
    // Poll both until both are done: an emulated card works, and answers, only while it is polled.
    received |= to.receive(value);
    delivered |= from.delivered();
    sent = received >= 0 && delivered >= 0;
  }
  return sent;
}

}  // namespace

int main(int argc, char** argv) {
  End left;
  End right;
  if (left.open(argc > 2 ? argv[1] : "emu:wire", 1) != 0 ||
      right.open(argc > 2 ? argv[2] : "emu:wire", 2) != 0) {
    return 1;
  }
  // A message that reaches a card while its link is down is lost: wait at both ends.
  if (left.card->wait_link(1000) != 0 || right.card->wait_link(1000) != 0) {
    return 1;
  }
  for (uint32_t round = 0; round < kRounds; ++round) {
    const auto value = static_cast<uint8_t>(round);
    if (!pass(left, right, 2, value) || !pass(right, left, 1, value)) {
      return fail("a message was lost, or came back changed");
    }
  }
  std::printf("pingpong: %u rounds of %u bytes, all verified\n", kRounds, unsigned{kBytes});
  // Destructors stop the cards; close() tells whether that worked.
  return left.card->close() == 0 && right.card->close() == 0 ? 0 : fail("close");
}
