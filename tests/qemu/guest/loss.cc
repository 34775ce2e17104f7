// A card that loses its state, or falls off the bus, while messages are in flight.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <thread>

#include "tests/qemu/guest/guest.hpp"

namespace rio::guest {
namespace {

using pmd::Status;

constexpr uint32_t kBefore = 50;  // messages before the host is asked
constexpr uint32_t kWindow = 16;  // in flight
constexpr uint32_t kSilenceMs = 2000;

/// Messages to itself, many in flight, until no more come back.
class Stream {
 public:
  explicit Stream(Station& card) : card_(card) {}

  /// Send and reap. @return messages that came back.
  uint32_t turn() {
    for (; in_flight_ < kWindow; ++in_flight_) {
      pmd::TxMessage out{};
      out.iova = card_.memory().iova;
      out.length_bytes = 512;
      out.dest_id = dest_id_;
      out.mbox = static_cast<uint8_t>(in_flight_ % regs::kMultiMailboxes);
      if (card_.card().tx().burst(&out, 1) != 1) {
        break;
      }
    }
    pmd::RxMessage in{};
    if (card_.card().shared().burst(&in, 1) == 1) {
      const auto index = static_cast<uint32_t>(in.cookie);
      const pmd::RxBuffer buffer{card_.card().buffers()->iova(index), index};
      (void)card_.card().shared().post(&buffer, 1);
    }
    pmd::TxDone done{};
    const uint32_t n = card_.card().tx().reap(&done, 1);
    in_flight_ -= n;
    delivered += n != 0 && done.status == Status::kOk ? 1 : 0;
    return n;
  }

  /// Asks for `what` to be done to the card, and runs until it shows: no completion for a while.
  [[nodiscard]] bool until_silent(const char* what) {
    if (!eventually([&] { return turn(), delivered >= kBefore; })) {
      return false;
    }
    ask_host(what);
    auto last = std::chrono::steady_clock::now();
    return eventually([&] {
      const auto now = std::chrono::steady_clock::now();
      last = turn() != 0 ? now : last;
      return now - last > std::chrono::milliseconds(kSilenceMs);
    });
  }

  uint32_t delivered = 0;

 private:
  Station& card_;
  uint32_t dest_id_ = card_.dest_id();
  uint32_t in_flight_ = 0;
};

/// No completion may name an entry that was never posted, whatever happens to the card.
bool sound(Station& card) {
  return card.card().tx().stats().bad_completions == 0 &&
         card.card().shared().stats().bad_completions == 0;
}

}  // namespace

/// lost-state CARD: the rings stop without the driver's doing; opened again, the card works.
int lost_state(const Arguments& args) {
  Station card;
  if (!card.open(args[0])) {
    return 1;
  }
  Stream stream(card);
  if (!stream.until_silent("lose-state")) {
    return fail("messages go on, or did not begin: %u delivered", stream.delivered);
  }
  if (card.card().card().gone()) {
    return fail("a card that lost its state is taken to be gone");
  }
  if (const int state = card.card().tx().ring_state(nullptr, nullptr);
      state == static_cast<int>(regs::RingState::kRunning)) {
    return fail("the ring is said to run still");
  }
  if (!sound(card)) {
    return fail("completions of what was never posted");
  }
  if (const int rc = card.close(); rc != 0) {
    return fail("close: %d", rc);
  }
  Station again;
  if (!again.open(args[0]) || !again.pass(again, 4096, 8)) {
    return fail("the card does not work after it was opened anew");
  }
  return again.close() == 0 ? 0 : 1;
}

/// unbound CARD: the card is taken from its driver while messages run. The kernel waits until this
/// program has let go of it, which it does without being asked.
int unbound(const Arguments& args) {
  Station card;
  if (!card.open(args[0])) {
    return 1;
  }
  Stream stream(card);
  if (!eventually([&] { return stream.turn(), stream.delivered >= kBefore; })) {
    return fail("no messages: %u delivered", stream.delivered);
  }
  std::atomic<long> took_ms = -1;
  std::thread administrator([&] {
    const auto start = std::chrono::steady_clock::now();
    std::ofstream("/sys/bus/pci/drivers/vfio-pci/unbind") << args[0] << std::flush;
    took_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                  std::chrono::steady_clock::now() - start)
                  .count();
  });
  const bool released = eventually([&] { return stream.turn(), took_ms >= 0; });
  if (!released) {
    std::_Exit(fail("the kernel still waits for the card"));
  }
  administrator.join();
  fact("unbind_ms", took_ms);
  if (!card.card().card().gone()) {
    return fail("the card is not known to be gone");
  }
  if (!sound(card)) {
    return fail("completions of what was never posted");
  }
  if (const int rc = card.close(); rc != -ENODEV) {
    return fail("close: %d", rc);
  }
  return 0;
}

/// vanished CARD: the BAR reads all ones. Everything ends with an error.
int vanished(const Arguments& args) {
  Station card;
  if (!card.open(args[0])) {
    return 1;
  }
  Stream stream(card);
  if (!stream.until_silent("vanish")) {
    return fail("messages go on, or did not begin: %u delivered", stream.delivered);
  }
  if (!card.card().card().gone()) {
    return fail("the card is not known to be gone");
  }
  if (const int state = card.card().tx().ring_state(nullptr, nullptr); state != -ENODEV) {
    return fail("state of a ring of a card that is gone: %d", state);
  }
  if (!sound(card)) {
    return fail("completions of what was never posted");
  }
  if (const int rc = card.close(); rc != -ENODEV) {
    return fail("close: %d", rc);
  }
  Station again;
  return again.open(args[0]) ? fail("a card that is gone was opened") : 0;
}

}  // namespace rio::guest
